// RUN: magweld-opt --plan-execution --lower-subgraphs --split-input-file --verify-diagnostics %s | filecheck %s

// A number of rows that a call tells: 37 stands for it in the host function, kernels
// have it as a dynamic extent. Rows go in tiles of eight, four, two and one.
//
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:.*]]: tensor<37x64xf32>
// CHECK:         %[[OUT:.*]] = tensor.empty() : tensor<37x64xf32>
// CHECK:         %[[IN:.*]] = tensor.cast %[[X]] : tensor<37x64xf32> to tensor<?x64xf32>
// CHECK:         %[[TO:.*]] = tensor.cast %[[OUT]] : tensor<37x64xf32> to tensor<?x64xf32>
// CHECK:         %[[R:.*]] = call @kernel_0(%[[IN]], %[[TO]])
// CHECK:         tensor.cast %[[R]] : tensor<?x64xf32> to tensor<37x64xf32>
//
// CHECK:       func.func private @kernel_0(%[[A:.*]]: tensor<?x64xf32>, %[[D:.*]]: tensor<?x64xf32>)
// CHECK-SAME:    tile_graph.parts = 4
// CHECK-SAME:    tile_graph.runtime = {beside = 2 : i64, extent = 37 : i64, step = 8 : i64}
// CHECK:         %[[N:.*]] = tensor.dim %[[D]], %{{.*}} : tensor<?x64xf32>
// CHECK:         %[[EIGHTS:.*]] = affine.apply #[[$EIGHT:.*]](%[[N]])
// CHECK:         scf.forall {{.*}} = (0, 0) to (%[[EIGHTS]], 64) step (8, 32)
// CHECK:           tensor.extract_slice %[[A]][{{.*}}] [8, 32] [1, 1] : tensor<?x64xf32>
// CHECK:         %[[REST:.*]] = affine.apply #[[$EIGHT]](%[[N]])
// CHECK:         %[[FOURS:.*]] = affine.apply #{{.*}}(%[[N]])
// CHECK:         scf.forall {{.*}} = (%[[REST]], 0) to (%[[FOURS]], 64) step (4, 32)
// CHECK:         scf.forall {{.*}} step (2, 32)
// CHECK:         scf.forall {{.*}} to (%[[N]], 64) step (1, 32)
#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

module attributes {magweld.stand_ins = array<i64: 37>} {
  func.func @rows(%x: tensor<37x64xf32>) -> tensor<37x64xf32>
      attributes {tile_graph.device = #device} {
    %0 = "tile_graph.subgraph"() ({
      %e = "tile_graph.operator"() ({
        %empty = tensor.empty() : tensor<37x64xf32>
        %r = linalg.exp ins(%x : tensor<37x64xf32>) outs(%empty : tensor<37x64xf32>)
            -> tensor<37x64xf32>
        gpu.yield %r : tensor<37x64xf32>
      }) {op_name = "exp", tile = #tile_graph.tile<[8, 32]>} : () -> tensor<37x64xf32>
      gpu.yield %e : tensor<37x64xf32>
    }) {level = "l2", ragged, subgraph_name = "rows", tile = #tile_graph.tile<[8, 32]>}
        : () -> tensor<37x64xf32>
    return %0 : tensor<37x64xf32>
  }
}

// -----

// The strides of what has such an extent inside are no constants.

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

module attributes {magweld.stand_ins = array<i64: 37>} {
  func.func @inner(%x: tensor<64x37xf32>) -> tensor<64x37xf32>
      attributes {tile_graph.device = #device} {
    // expected-error @+1 {{runtime-extent: strides of tensor<64x37xf32> depend on an extent that a call tells}}
    %0 = "tile_graph.subgraph"() ({
      %e = "tile_graph.operator"() ({
        %empty = tensor.empty() : tensor<64x37xf32>
        %r = linalg.exp ins(%x : tensor<64x37xf32>) outs(%empty : tensor<64x37xf32>)
            -> tensor<64x37xf32>
        gpu.yield %r : tensor<64x37xf32>
      }) {op_name = "exp", tile = #tile_graph.tile<[32, 8]>} : () -> tensor<64x37xf32>
      gpu.yield %e : tensor<64x37xf32>
    }) {level = "l2", ragged, subgraph_name = "inner", tile = #tile_graph.tile<[32, 8]>}
        : () -> tensor<64x37xf32>
    return %0 : tensor<64x37xf32>
  }
}

// -----

// Rows in another order: a tile reads rows that are not its own.

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#flat = affine_map<(d0, d1) -> (d1)>

module attributes {magweld.stand_ins = array<i64: 37>} {
  func.func @summed(%x: tensor<37x64xf32>) -> tensor<64xf32>
      attributes {tile_graph.device = #device} {
    // expected-error @+1 {{no loop over tiles runs along an extent that a call tells}}
    %0 = "tile_graph.subgraph"() ({
      %e = "tile_graph.operator"() ({
        %zero = arith.constant 0.0 : f32
        %empty = tensor.empty() : tensor<64xf32>
        %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
        %r = linalg.generic {indexing_maps = [#all, #flat],
            iterator_types = ["reduction", "parallel"]}
            ins(%x : tensor<37x64xf32>) outs(%fill : tensor<64xf32>) {
        ^bb0(%a: f32, %o: f32):
          %s = arith.addf %a, %o : f32
          linalg.yield %s : f32
        } -> tensor<64xf32>
        gpu.yield %r : tensor<64xf32>
      }) {op_name = "sum", tile = #tile_graph.tile<[32]>} : () -> tensor<64xf32>
      gpu.yield %e : tensor<64xf32>
    }) {level = "l2", ragged, subgraph_name = "summed", tile = #tile_graph.tile<[32]>}
        : () -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}
