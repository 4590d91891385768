// What a convolution by Winograd's filtering has beside its tiles lies with them if the
// level has room, and in the level around it otherwise. A window lasts from tile to
// tile: nothing else lies in its place.
//
// RUN: magweld-opt --plan-execution --split-input-file %s | filecheck %s
// RUN: magweld-opt --plan-execution --lower-subgraphs --split-input-file %s | filecheck %s --check-prefix=LOWERED

#device = #tile_graph.device<"roomy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 131072, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
// CHECK-LABEL: func.func @roomy(
// CHECK:         "tile_graph.for_tiles"() ({
// CHECK:           %[[WINDOW:.+]] = "tile_graph.allocate"() {lasting, place = #tile_graph.place<"l2", 0 : i64, 3456 : i64, 64 : i64>, role = "window"} : () -> tensor<1x4x12x18xf32>
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 56256 : i64, 8192 : i64, 64 : i64>} : () -> tensor<1x16x8x16xf32>
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 5760 : i64, 2304 : i64, 64 : i64>, role = "turned"}
// CHECK:           %[[IMAGE:.+]] = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 8064 : i64, 9216 : i64, 64 : i64>, role = "transformed"}
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 17280 : i64, 33792 : i64, 64 : i64>, role = "products"}
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 51072 : i64, 5120 : i64, 64 : i64>, role = "weights"}
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 56192 : i64, 4 : i64, 64 : i64>, role = "sum"}
// CHECK-NEXT:      "tile_graph.compute"() ({
// CHECK:             linalg.conv_2d_nchw_fchw
// CHECK:           "tile_graph.release"(%[[WINDOW]])
// CHECK:           "tile_graph.release"(%[[IMAGE]])
//
// LOWERED-LABEL: func.func private @kernel_0(
// LOWERED:         linalg.fill {tile_graph.lasting} {{.+}} -> tensor<1x4x12x18xf32>
// LOWERED:         linalg.fill ins(%{{.+}} -> tensor<1x16x8x16xf32>
// LOWERED:         linalg.conv_2d_nchw_fchw {{.+}} tile_graph.beside = {products = #tile_graph.place<"l2", 17280 : i64, 33792 : i64, 64 : i64>, sum = #tile_graph.place<"l2", 56192 : i64, 4 : i64, 64 : i64>, transformed = #tile_graph.place<"l2", 8064 : i64, 9216 : i64, 64 : i64>, turned = #tile_graph.place<"l2", 5760 : i64, 2304 : i64, 64 : i64>, weights = #tile_graph.place<"l2", 51072 : i64, 5120 : i64, 64 : i64>}
func.func @roomy(%x: tensor<1x4x16x16xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<1x16x16x16xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%a: index, %b: index, %c: index, %d: index):
        tensor.yield %zero : f32
      } : tensor<1x4x16x16xf32> to tensor<1x4x18x18xf32>
      %e = tensor.empty() : tensor<1x16x16x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
      %y = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64} ins(%padded, %w : tensor<1x4x18x18xf32>, tensor<16x4x3x3xf32>) outs(%f : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
      gpu.yield %y : tensor<1x16x16x16xf32>
    }) {op_name = "conv", tile = #tile_graph.tile<[1, 16, 8, 16]>} : () -> tensor<1x16x16x16xf32>
    gpu.yield %1 : tensor<1x16x16x16xf32>
  }) {level = "l2", subgraph_name = "conv", tile = #tile_graph.tile<[1, 16, 8, 16]>} : () -> tensor<1x16x16x16xf32>
  return %0 : tensor<1x16x16x16xf32>
}

// -----

#device = #tile_graph.device<"narrow", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 32768, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
// CHECK-LABEL: func.func @narrow(
// CHECK:           "tile_graph.allocate"() {lasting, place = #tile_graph.place<"l2", 0 : i64, 3456 : i64, 64 : i64>, role = "window"} : () -> tensor<1x4x12x18xf32>
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"l2", 5760 : i64, 8192 : i64, 64 : i64>} : () -> tensor<1x16x8x16xf32>
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"dram", 0 : i64, 2304 : i64, 64 : i64>, role = "turned"}
// CHECK:           "tile_graph.allocate"() {place = #tile_graph.place<"dram", 2304 : i64, 9216 : i64, 64 : i64>, role = "transformed"}
func.func @narrow(%x: tensor<1x4x16x16xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<1x16x16x16xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%a: index, %b: index, %c: index, %d: index):
        tensor.yield %zero : f32
      } : tensor<1x4x16x16xf32> to tensor<1x4x18x18xf32>
      %e = tensor.empty() : tensor<1x16x16x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
      %y = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64} ins(%padded, %w : tensor<1x4x18x18xf32>, tensor<16x4x3x3xf32>) outs(%f : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
      gpu.yield %y : tensor<1x16x16x16xf32>
    }) {op_name = "conv", tile = #tile_graph.tile<[1, 16, 8, 16]>} : () -> tensor<1x16x16x16xf32>
    gpu.yield %1 : tensor<1x16x16x16xf32>
  }) {level = "l2", subgraph_name = "conv", tile = #tile_graph.tile<[1, 16, 8, 16]>} : () -> tensor<1x16x16x16xf32>
  return %0 : tensor<1x16x16x16xf32>
}
