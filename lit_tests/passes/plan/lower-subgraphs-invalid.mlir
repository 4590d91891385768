// RUN: magweld-opt --plan-execution --lower-subgraphs --verify-diagnostics %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @not_wrapped(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{expected extract-subgraphs to have wrapped it}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
