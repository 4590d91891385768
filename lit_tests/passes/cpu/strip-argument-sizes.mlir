// RUN: magweld-opt --outline-tile-range --strip-argument-sizes %s | filecheck %s

// The extent is an argument, and each loop has the tiles of one size: numbered one
// after another. What a call gives is a pointer; no address depends on the extent.
//
// CHECK-LABEL: func.func @kernel_0(
// CHECK-SAME:    %[[A:.*]]: memref<1x64xf32>, %[[D:.*]]: memref<1x64xf32>, %[[N:.*]]: index, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK-SAME:    magweld.tiles = 11 : i64
// CHECK-DAG:     memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[N]], 64], strides: [64, 1]
// CHECK-DAG:     memref.reinterpret_cast %[[D]] to offset: [0], sizes: [%[[N]], 64], strides: [64, 1]
// CHECK:         %[[FOURS:.*]] = affine.apply #{{.*}}(%[[N]])
// CHECK:         %[[COUNT:.*]] = arith.divui %[[FOURS]], %{{.*}} : index
// CHECK:         %[[OWN:.*]] = arith.muli %[[COUNT]], %{{.*}} : index
// CHECK:         arith.subi %[[LO]]
// CHECK:         arith.subi %[[HI]]
// CHECK:         %[[BEFORE:.*]] = arith.addi %{{.*}}, %[[OWN]] : index
// CHECK:         scf.for
// CHECK:           memref.subview %{{.*}}[%{{.*}}, 0] [4, 64] [1, 1] : memref<?x64xf32>
// CHECK:         arith.subi %[[N]], %[[FOURS]] : index
// CHECK:         arith.subi %[[LO]], %[[BEFORE]]
// CHECK:         scf.for
// CHECK:           memref.subview %{{.*}}[%{{.*}}, 0] [1, 64] [1, 1] : memref<?x64xf32>
#fours = affine_map<(d0) -> ((d0 floordiv 4) * 4)>
func.func @kernel_0(%a: memref<?x64xf32>, %d: memref<?x64xf32>) -> memref<?x64xf32>
    attributes {tile_graph.kernel, tile_graph.parts = 2 : i64,
        tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %d, %c0 : memref<?x64xf32>
  %whole = affine.apply #fours(%n)
  scf.forall (%i) = (0) to (%whole) step (4) {
    %x = memref.subview %a[%i, 0] [4, 64] [1, 1]
        : memref<?x64xf32> to memref<4x64xf32, strided<[64, 1], offset: ?>>
    %y = memref.subview %d[%i, 0] [4, 64] [1, 1]
        : memref<?x64xf32> to memref<4x64xf32, strided<[64, 1], offset: ?>>
    linalg.exp ins(%x : memref<4x64xf32, strided<[64, 1], offset: ?>>)
        outs(%y : memref<4x64xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  scf.forall (%i) = (%whole) to (%n) step (1) {
    %x = memref.subview %a[%i, 0] [1, 64] [1, 1]
        : memref<?x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %y = memref.subview %d[%i, 0] [1, 64] [1, 1]
        : memref<?x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    linalg.exp ins(%x : memref<1x64xf32, strided<[64, 1], offset: ?>>)
        outs(%y : memref<1x64xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %d : memref<?x64xf32>
}
