// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-tiles-to-threads{threads=64 subgroup=32})" %s | filecheck %s

// 37 threads would read 16 bytes of a row each, half a sector, four times. Of 32 rows
// four threads have a row, of which each accesses all in a quarter; five are left.
// CHECK-LABEL: func.func @rest(
// CHECK:           %[[MANY:.+]] = memref.subview %{{.+}}[0, 0, 0] [32, 4, 4] [1, 1, 1]
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (16, 4) {
// CHECK:             linalg.generic {{.+}} ins(%{{.+}} : memref<2x1x4xf32,
// CHECK:           %[[FEW:.+]] = memref.subview %{{.+}}[32, 0, 0] [5, 4, 4] [1, 1, 1]
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (5, 4) {
// CHECK:             linalg.generic {{.+}} ins(%{{.+}} : memref<1x1x4xf32,
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @rest(%x: memref<37x4x4xf32, strided<[64, 4, 1]>>, %out: memref<37x4x4xf32, strided<[64, 4, 1]>>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<37x4x4xf32, strided<[64, 4, 1]>>) outs(%out : memref<37x4x4xf32, strided<[64, 4, 1]>>) attrs = {magweld.vector_loop = 2 : i64} {
    ^bb0(%a: f32, %b: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// The number of an iteration is asked for: the operation stays whole.
// CHECK-LABEL: func.func @numbers(
// CHECK:           scf.forall (%{{.+}}) in (37) {
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @numbers(%out: memref<37x4x4xi32, strided<[64, 4, 1]>>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel"]} outs(%out : memref<37x4x4xi32, strided<[64, 4, 1]>>) attrs = {magweld.vector_loop = 2 : i64} {
    ^bb0(%b: i32):
      %0 = linalg.index 0 : index
      %1 = arith.index_cast %0 : index to i32
      linalg.yield %1 : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
