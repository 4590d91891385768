// Operators and subgraphs give way to what they hold, connects to their values; no
// attribute of ours is left.
// RUN: not magweld-opt --strip-tile-graph %S/../../dialects/tile_graph/ops.mlir 2>&1 | filecheck %s --check-prefix=PLAN
// PLAN: error: 'tile_graph.for_tiles' op has no form without it: lower-subgraphs first

// RUN: magweld-opt --strip-tile-graph %s | filecheck %s
// RUN: magweld-opt --strip-tile-graph %s | not grep -e tile_graph -e magweld
#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 12.5, 32>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[A:.+]]: tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK:         %[[EXP:.+]] = linalg.exp ins(%[[A]] :
// CHECK:         %[[TANH:.+]] = linalg.tanh ins(%[[EXP]] :
// CHECK:         return %[[TANH]]
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32>
    attributes {tile_graph.device = #device, magweld.remarks = ["it is small"]} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<8x4xf32>
      %exp = linalg.exp ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
      gpu.yield %exp : tensor<8x4xf32>
    }) {op_name = "exp"} : () -> tensor<8x4xf32>
    %2 = "tile_graph.connect"(%1) {level = "l2"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<8x4xf32>
      %tanh = linalg.tanh ins(%2 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
      gpu.yield %tanh : tensor<8x4xf32>
    }) {op_name = "tanh"} : () -> tensor<8x4xf32>
    gpu.yield %3 : tensor<8x4xf32>
  }) {subgraph_name = "exp_tanh", level = "l2"} : () -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func private @kernel_0
// CHECK-SAME:    -> tensor<4xf32> {
func.func private @kernel_0(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel, tile_graph.tile = #tile_graph.tile<[4]>} {
  return %out : tensor<4xf32>
}

// CHECK-LABEL: func.func @host
// CHECK:         tensor.empty() : tensor<4xf32>
// CHECK-NEXT:    call @kernel_0(%{{.+}}, %{{.+}}) : (
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() {magweld.place = "output"} : tensor<4xf32>
  %0 = call @kernel_0(%x, %e) {tile_graph.operators = ["exp"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
