// RUN: magweld-opt --plan-execution %s | filecheck %s --check-prefix=PLAN
// RUN: magweld-opt --plan-execution --lower-subgraphs %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// Neither 67 nor 10 is a multiple of the size of the tile: tiles have four shapes, each
// with a block and then a loop of its own. Smaller ones lie in the places of full ones.
//
// PLAN-LABEL: func.func @exp(
// PLAN:         "tile_graph.for_tiles"() ({
// PLAN-NEXT:    ^bb0(%[[I:.+]]: index, %[[J:.+]]: index):
// PLAN-NEXT:      "tile_graph.load"(%{{.+}}, %[[I]], %[[J]]) {{.+}}place<"l2", 0 : i64, 512 : i64, 64 : i64>, sizes = [32, 4]
// PLAN-NEXT:      "tile_graph.allocate"() {place = #tile_graph.place<"l2", 512 : i64, 512 : i64, 64 : i64>}
// PLAN:         ^bb1(%[[I:.+]]: index, %[[J:.+]]: index):
// PLAN-NEXT:      "tile_graph.load"(%{{.+}}, %[[I]], %[[J]]) {{.+}}place<"l2", 0 : i64, 256 : i64, 64 : i64>, sizes = [32, 2]
// PLAN-NEXT:      "tile_graph.allocate"() {place = #tile_graph.place<"l2", 512 : i64, 256 : i64, 64 : i64>}
// PLAN:           "tile_graph.store"{{.+}} {{.+}} result = 0 : i64, sizes = [32, 2]
// PLAN:         ^bb2(
// PLAN:           "tile_graph.store"{{.+}} {{.+}} result = 0 : i64, sizes = [3, 4]
// PLAN:         ^bb3(
// PLAN:           "tile_graph.store"{{.+}} {{.+}} result = 0 : i64, sizes = [3, 2]
// PLAN:         }) {extents = [67, 10], footprint = 1024 : i64, level = "l2", operators = ["exp"], steps = [32, 4],
//
// CHECK-LABEL: func.func @exp(
// CHECK:         call @kernel_0(
// CHECK:       func.func private @kernel_0(%[[X:.+]]: tensor<67x10xf32>, %[[OUT:.+]]: tensor<67x10xf32>)
// CHECK-SAME:      tile_graph.parts = 4 : i64, tile_graph.tile = #tile_graph.tile<[32, 4]>
// CHECK-NEXT:    %[[A:.+]] = scf.forall (%[[I:.+]], %[[J:.+]]) = (0, 0) to (64, 8) step (32, 4) shared_outs(%[[O:.+]] = %[[OUT]])
// CHECK:           tensor.extract_slice %[[X]][%[[I]], %[[J]]] [32, 4] [1, 1]
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %[[O]][%[[I]], %[[J]]] [32, 4] [1, 1]
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>, #gpu.block<linear_dim_1>]}
// CHECK-NEXT:    %[[B:.+]] = scf.forall (%{{.+}}, %{{.+}}) = (0, 8) to (64, 10) step (32, 2) shared_outs(%{{.+}} = %[[A]])
// CHECK:         %[[C:.+]] = scf.forall (%{{.+}}, %{{.+}}) = (64, 0) to (67, 8) step (3, 4) shared_outs(%{{.+}} = %[[B]])
// CHECK:         %[[D:.+]] = scf.forall (%{{.+}}, %{{.+}}) = (64, 8) to (67, 10) step (3, 2) shared_outs(%{{.+}} = %[[C]])
// CHECK:         return %[[D]]
func.func @exp(%x: tensor<67x10xf32>) -> tensor<67x10xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<67x10xf32>
      %r = linalg.exp ins(%x : tensor<67x10xf32>) outs(%empty : tensor<67x10xf32>)
          -> tensor<67x10xf32>
      gpu.yield %r : tensor<67x10xf32>
    }) {op_name = "exp"} : () -> tensor<67x10xf32>
    gpu.yield %0 : tensor<67x10xf32>
  }) {subgraph_name = "exp", level = "l2", tile = #tile_graph.tile<[32, 4]>, ragged,
      footprint = 1024, implementation = "generated"} : () -> tensor<67x10xf32>
  return %out : tensor<67x10xf32>
}
