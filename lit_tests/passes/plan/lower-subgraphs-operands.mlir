// RUN: magweld-opt --plan-execution --lower-subgraphs %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Two edges from one tensor are one operand of the kernel.
//
// CHECK-LABEL: func.func @one_operand(
// CHECK:         %[[A:.*]] = call @[[FIRST:kernel_[0-9]+]](
// CHECK:         call @[[SECOND:kernel_[0-9]+]](%[[A]], %{{.*}}) {{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @one_operand(%x: tensor<4x8xf32>) -> tensor<4x8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<4x8xf32>
      %r = linalg.exp ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>)
          -> tensor<4x8xf32>
      gpu.yield %r : tensor<4x8xf32>
    }) {op_name = "exp"} : () -> tensor<4x8xf32>
    gpu.yield %2 : tensor<4x8xf32>
  }) {implementation = "generated", level = "l2", subgraph_name = "a", tile = #tile_graph.tile<[2, 8]>} : () -> tensor<4x8xf32>
  %left = "tile_graph.connect"(%0) {level = "dram"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %right = "tile_graph.connect"(%0) {level = "dram"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "tile_graph.subgraph"() ({
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<4x8xf32>
      %r = linalg.mul ins(%left, %right : tensor<4x8xf32>, tensor<4x8xf32>)
          outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
      gpu.yield %r : tensor<4x8xf32>
    }) {op_name = "mul"} : () -> tensor<4x8xf32>
    gpu.yield %2 : tensor<4x8xf32>
  }) {implementation = "generated", level = "l2", subgraph_name = "b", tile = #tile_graph.tile<[2, 8]>} : () -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
