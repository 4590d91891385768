// RUN: magweld-opt --pass-pipeline='builtin.module(fit-memory{budget=6000})' %s \
// RUN:   | filecheck %s
// RUN: magweld-opt --pass-pipeline='builtin.module(fit-memory{budget=100000})' %s \
// RUN:   | filecheck --check-prefix=FITS %s
// RUN: not magweld-opt --pass-pipeline='builtin.module(fit-memory{budget=100})' %s \
// RUN:   2>&1 | filecheck --check-prefix=NEVER %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// The result of the first convolution takes 8192 bytes, more than there are: both become
// one outer subgraph, whose tensors live in tiles. What comes from outside is stored.
//
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:      #tile_graph.level<"host", 0 : i64, 0 : i64, {{.+}}#tile_graph.level<"dram", 1 : i64, 6000 : i64,
// CHECK:         %[[R:.+]] = "tile_graph.subgraph"() ({
// CHECK:           %[[A:.+]] = "tile_graph.operator"() ({
// CHECK:             linalg.conv_2d_nchw_fchw
// CHECK:           }) {op_name = "first"}
// CHECK:           %[[E:.+]] = "tile_graph.connect"(%[[A]]) {level = "dram"}
// CHECK:           %[[B:.+]] = "tile_graph.operator"() ({
// CHECK:             tensor.pad %[[E]]
// CHECK:           }) {op_name = "second"}
// CHECK:           gpu.yield %[[B]]
// CHECK:         }) {footprint = {{[0-9]+}} : i64, level = "dram"
// CHECK-SAME:        ragged, recompute =
// CHECK-SAME:        tile = #tile_graph.tile<[1, 1, {{[0-9]+}}, {{[0-9]+}}]>
// CHECK-NOT:     tile_graph.operator
// CHECK:         return %[[R]]
//
// With enough memory nothing changes, and a budget that no plan keeps is an error.
//
// FITS-LABEL:  func.func @chain(
// FITS-NOT:      tile_graph.subgraph
// FITS:          return
//
// NEVER:       error: memory-budget: to make a tensor of [1, 2, 32, 32], 8192 bytes of arena are needed
func.func @chain(%x: tensor<1x1x32x32xf32>, %v: tensor<2x1x3x3xf32>,
                 %w: tensor<1x2x3x3xf32>) -> tensor<1x1x32x32xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x1x32x32xf32> to tensor<1x1x34x34xf32>
    %e = tensor.empty() : tensor<1x2x32x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x32x32xf32>)
        -> tensor<1x2x32x32xf32>
    %r = linalg.conv_2d_nchw_fchw
        ins(%p, %v : tensor<1x1x34x34xf32>, tensor<2x1x3x3xf32>)
        outs(%f : tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
    gpu.yield %r : tensor<1x2x32x32xf32>
  }) {op_name = "first"} : () -> tensor<1x2x32x32xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %p = tensor.pad %1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x2x32x32xf32> to tensor<1x2x34x34xf32>
    %e = tensor.empty() : tensor<1x1x32x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x32x32xf32>)
        -> tensor<1x1x32x32xf32>
    %r = linalg.conv_2d_nchw_fchw
        ins(%p, %w : tensor<1x2x34x34xf32>, tensor<1x2x3x3xf32>)
        outs(%f : tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
    gpu.yield %r : tensor<1x1x32x32xf32>
  }) {op_name = "second"} : () -> tensor<1x1x32x32xf32>
  return %2 : tensor<1x1x32x32xf32>
}
