// RUN: magweld-opt --plan-execution --verify-diagnostics %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 65536, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 32, 32, 256, 100.0, [], []>

// Threads that share a tile would have to share tiles of several shapes.
func.func @shared(%x: tensor<67x10xf32>) -> tensor<67x10xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{'tile_graph.subgraph' op expected the sizes of [32, 4] to divide the extents [67, 10]: units of toy share a tile}}
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<67x10xf32>
      %r = linalg.exp ins(%x : tensor<67x10xf32>) outs(%empty : tensor<67x10xf32>)
          -> tensor<67x10xf32>
      gpu.yield %r : tensor<67x10xf32>
    }) {op_name = "exp"} : () -> tensor<67x10xf32>
    gpu.yield %0 : tensor<67x10xf32>
  }) {subgraph_name = "exp", level = "shared", tile = #tile_graph.tile<[32, 4]>, ragged,
      footprint = 1024, implementation = "generated"} : () -> tensor<67x10xf32>
  return %out : tensor<67x10xf32>
}
