// RUN: magweld-opt --extract-subgraphs --split-input-file --verify-diagnostics %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @three_results(%a: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "l2"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "second"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%2) {level = "l2"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-error @+1 {{ends a group that makes 3 tensors for others, expected at most 2}}
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%3 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "third"} : () -> tensor<64x64xf32>
  return %0, %2, %4 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @between(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  // expected-error @+1 {{reads what has to run behind it}}
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "between"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%0) {level = "l2"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.connect"(%2) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.add ins(%3, %4 : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "add"} : () -> tensor<64x64xf32>
  return %5 : tensor<64x64xf32>
}
