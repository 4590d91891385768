// RUN: magweld-opt --split-input-file --outline-memory-tiles %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"host", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"dram", 1, 4096, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 2, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 3, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// Four bands of ten rows, the last one of two. The two in the middle have one shape; the
// others are padded at the border of the image, and nowhere else. The device is that of
// the tiles again.
//
// CHECK-LABEL: func.func @bands(
// CHECK-SAME:      %[[X:.+]]: tensor<1x1x32x8xf32>, %[[W:.+]]: tensor<1x1x3x3xf32>
// CHECK-SAME:      [#tile_graph.level<"dram", 0 : i64, 4096 : i64,
// CHECK:         %[[D:.+]] = tensor.empty() : tensor<1x1x32x8xf32>
// CHECK:         %[[R:.+]] = call @tiled_0(%[[X]], %[[W]], %[[D]])
// CHECK:         return %[[R]]
// CHECK:       func.func private @tile_0(%{{.+}}: tensor<1x1x11x8xf32>, {{.+}}) -> tensor<1x1x10x8xf32>
// CHECK:         tensor.pad %{{.+}} low[0, 0, 1, 1] high[0, 0, 0, 1]
// CHECK:         linalg.conv_2d_nchw_fchw
// CHECK:       func.func private @tile_1(%{{.+}}: tensor<1x1x12x8xf32>, {{.+}}) -> tensor<1x1x10x8xf32>
// CHECK:         tensor.pad %{{.+}} low[0, 0, 0, 1] high[0, 0, 0, 1]
// CHECK:       func.func private @tile_2(%{{.+}}: tensor<1x1x3x8xf32>, {{.+}}) -> tensor<1x1x2x8xf32>
// CHECK:         tensor.pad %{{.+}} low[0, 0, 0, 1] high[0, 0, 1, 1]
// CHECK:       func.func private @tiled_0(
// CHECK-SAME:      magweld.tile_runs = [
// CHECK-SAME:      {function = @tile_0, operands = array<i64: 0, 1>, position = array<i64: 0, 0, 0, 0>, starts = [array<i64: 0, 0, 0, 0>, array<i64: 0, 0, 0, 0>]}
// CHECK-SAME:      {function = @tile_1, {{[^}]+}} position = array<i64: 0, 0, 10, 0>, starts = [array<i64: 0, 0, 9, 0>
// CHECK-SAME:      {function = @tile_1, {{[^}]+}} position = array<i64: 0, 0, 20, 0>, starts = [array<i64: 0, 0, 19, 0>
// CHECK-SAME:      {function = @tile_2, {{[^}]+}} position = array<i64: 0, 0, 30, 0>, starts = [array<i64: 0, 0, 29, 0>
func.func @bands(%x: tensor<1x1x32x8xf32>, %w: tensor<1x1x3x3xf32>)
    -> tensor<1x1x32x8xf32> attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f32
      } : tensor<1x1x32x8xf32> to tensor<1x1x34x10xf32>
      %e = tensor.empty() : tensor<1x1x32x8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x32x8xf32>)
          -> tensor<1x1x32x8xf32>
      %r = linalg.conv_2d_nchw_fchw
          ins(%p, %w : tensor<1x1x34x10xf32>, tensor<1x1x3x3xf32>)
          outs(%f : tensor<1x1x32x8xf32>) -> tensor<1x1x32x8xf32>
      gpu.yield %r : tensor<1x1x32x8xf32>
    }) {op_name = "conv"} : () -> tensor<1x1x32x8xf32>
    gpu.yield %1 : tensor<1x1x32x8xf32>
  }) {subgraph_name = "memory_0", level = "dram", ragged,
      tile = #tile_graph.tile<[1, 1, 10, 8]>} : () -> tensor<1x1x32x8xf32>
  return %0 : tensor<1x1x32x8xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"host", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"dram", 1, 4096, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 2, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 3, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// A tensor times its positions: tiles that compute with positions differ.
//
// CHECK-LABEL: func.func @positions(
// CHECK:       func.func private @tile_0(
// CHECK-NOT:     affine.apply
// CHECK:         return
// CHECK:       func.func private @tile_1(
// CHECK:         linalg.index 0
// CHECK:         affine.apply #{{.+}}(%{{.+}}, %c4
func.func @positions(%x: tensor<8xi64>) -> tensor<8xi64>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<8xi64>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%x : tensor<8xi64>) outs(%e : tensor<8xi64>) {
      ^bb0(%a: i64, %b: i64):
        %i = linalg.index 0 : index
        %n = arith.index_cast %i : index to i64
        %s = arith.muli %a, %n : i64
        linalg.yield %s : i64
      } -> tensor<8xi64>
      gpu.yield %r : tensor<8xi64>
    }) {op_name = "ramp"} : () -> tensor<8xi64>
    gpu.yield %1 : tensor<8xi64>
  }) {subgraph_name = "memory_0", level = "dram", ragged,
      tile = #tile_graph.tile<[4]>} : () -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
