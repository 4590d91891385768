// RUN: magweld-opt --propagate-tiles --split-input-file --verify-diagnostics %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @no_tile(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{expected attribute 'tile', see select-tiles}}
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64xf32>) -> tensor<64xf32>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %1 : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.divf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "divide"} : () -> tensor<64x128xf32>
    gpu.yield %2 : tensor<64x128xf32>
  }) {subgraph_name = "rows", level = "l2", implementation = "generated"}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @unknown_region(%a: tensor<64x64xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{unknown-region: exp -> slice}}
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x64xf32>
      %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
          -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "exp"} : () -> tensor<64x64xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = "tile_graph.operator"() ({
      %r = tensor.extract_slice %1[0, 0] [32, 64] [2, 1]
          : tensor<64x64xf32> to tensor<32x64xf32>
      gpu.yield %r : tensor<32x64xf32>
    }) {op_name = "slice"} : () -> tensor<32x64xf32>
    gpu.yield %2 : tensor<32x64xf32>
  }) {subgraph_name = "exp_slice", level = "l2",
      tile = #tile_graph.tile<[32, 64]>}
      : () -> tensor<32x64xf32>
  return %out : tensor<32x64xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @unsplit(%a: tensor<64x64xf32>) -> tensor<128x64xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @+1 {{unsplit: tiles do not hold what concat joins}}
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x64xf32>
      %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
          -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "exp"} : () -> tensor<64x64xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = "tile_graph.operator"() ({
      %r = tensor.concat dim(0) %1, %a : (tensor<64x64xf32>, tensor<64x64xf32>)
          -> tensor<128x64xf32>
      gpu.yield %r : tensor<128x64xf32>
    }) {op_name = "concat"} : () -> tensor<128x64xf32>
    gpu.yield %2 : tensor<128x64xf32>
  }) {subgraph_name = "exp_concat", level = "l2",
      tile = #tile_graph.tile<[64, 64]>}
      : () -> tensor<128x64xf32>
  return %out : tensor<128x64xf32>
}
