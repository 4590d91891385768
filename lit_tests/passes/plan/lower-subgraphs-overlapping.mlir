// RUN: magweld-opt --lower-subgraphs %s | filecheck %s

// Tiles of 32 rows of 67: the third begins at row 35 and so is a full one, too.
//
// CHECK:       #[[START:.+]] = affine_map<(d0) -> (d0, 35)>
// CHECK:       func.func private @kernel_0(
// CHECK-NOT:     tile_graph.parts
// CHECK:         scf.forall (%[[I:.+]], %[[J:.+]]) = (0, 0) to (96, 8) step (32, 4) shared_outs(%[[OUT:.+]] = %arg1)
// CHECK-NEXT:      %[[ROW:.+]] = affine.min #[[START]](%[[I]])
// CHECK:           tensor.extract_slice %{{.+}}[%[[ROW]], %[[J]]] [32, 4] [1, 1]
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %[[OUT]][%[[ROW]], %[[J]]] [32, 4] [1, 1]

#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @exp(%arg0: tensor<67x8xf32>) -> tensor<67x8xf32> attributes {tile_graph.device = #tile_graph.device<"toy", [#tile_graph.level<"dram", 0 : i64, 0 : i64, 2.500000e+01 : f64, 64 : i64, 1 : i64, "explicit", 0.000000e+00 : f64, 0 : i64>, #tile_graph.level<"l2", 1 : i64, 65536 : i64, 2.000000e+02 : f64, 64 : i64, 2 : i64, "cache", 0.000000e+00 : f64, 0 : i64>, #tile_graph.level<"register", 2 : i64, 2048 : i64, 8.000000e+02 : f64, 32 : i64, 2 : i64, "explicit", 0.000000e+00 : f64, 0 : i64>], 2 : i64, 1 : i64, 1 : i64, 256 : i64, 1.000000e+02 : f64, [], []>} {
    %0 = "tile_graph.for_tiles"() ({
    ^bb0(%arg1: index, %arg2: index):
      %1 = "tile_graph.load"(%arg0, %arg1, %arg2) {moved = 2048 : i64, offsets = #map, place = #tile_graph.place<"l2", 0 : i64, 512 : i64, 64 : i64>, sizes = [32, 4], transactions = 32 : i64} : (tensor<67x8xf32>, index, index) -> tensor<32x4xf32>
      %2 = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 512 : i64, 512 : i64, 64 : i64>} : () -> tensor<32x4xf32>
      %3 = "tile_graph.compute"() ({
        %4 = linalg.exp ins(%1 : tensor<32x4xf32>) outs(%2 : tensor<32x4xf32>) -> tensor<32x4xf32>
        gpu.yield %4 : tensor<32x4xf32>
      }) {op_name = "exp"} : () -> tensor<32x4xf32>
      "tile_graph.release"(%1) : (tensor<32x4xf32>) -> ()
      "tile_graph.store"(%3, %2, %arg1, %arg2) {moved = 2048 : i64, offsets = #map, result = 0 : i64, sizes = [32, 4], transactions = 32 : i64} : (tensor<32x4xf32>, tensor<32x4xf32>, index, index) -> ()
      "tile_graph.release"(%2) : (tensor<32x4xf32>) -> ()
      gpu.yield
    }) {extents = [67, 8], overlapping, footprint = 1024 : i64, level = "l2", operators = ["exp"], steps = [32, 4], subgraph_name = "exp", tile = #tile_graph.tile<[32, 4]>} : () -> tensor<67x8xf32>
    return %0 : tensor<67x8xf32>
  }
}
