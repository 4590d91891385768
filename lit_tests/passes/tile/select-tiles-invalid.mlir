// RUN: magweld-opt --select-tiles --verify-diagnostics %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @no_room(%a: tensor<64x16384xf16>, %b: tensor<16384x64xf16>)
    -> tensor<64x64xf16>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{has no plan: footprint:}}
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f16
      %empty = tensor.empty() : tensor<64x64xf16>
      %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x64xf16>)
          -> tensor<64x64xf16>
      %r = linalg.matmul ins(%a, %b : tensor<64x16384xf16>, tensor<16384x64xf16>)
          outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
      gpu.yield %r : tensor<64x64xf16>
    }) {op_name = "matmul"} : () -> tensor<64x64xf16>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64x64xf16>) -> tensor<64x64xf16>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x64xf16>
      %r = linalg.exp ins(%1 : tensor<64x64xf16>) outs(%empty : tensor<64x64xf16>)
          -> tensor<64x64xf16>
      gpu.yield %r : tensor<64x64xf16>
    }) {op_name = "exp"} : () -> tensor<64x64xf16>
    gpu.yield %2 : tensor<64x64xf16>
  }) {subgraph_name = "product_exp", level = "l2"}
      : () -> tensor<64x64xf16>
  return %out : tensor<64x64xf16>
}
