// RUN: magweld-opt --outline-tile-range --strip-argument-sizes %s | filecheck %s

// The extent is an argument, and each loop has the tiles of one size; a range of numbers
// has the same share of each loop. What a call gives is a pointer; no address depends on
// the extent.
//
// CHECK-LABEL: func.func @kernel_0(
// CHECK-SAME:    %[[A:.*]]: memref<1x64xf32>, %[[D:.*]]: memref<1x64xf32>, %[[N:.*]]: index, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK-SAME:    magweld.tiles = 11 : i64
// CHECK-DAG:     memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[N]], 64], strides: [64, 1]
// CHECK-DAG:     memref.reinterpret_cast %[[D]] to offset: [0], sizes: [%[[N]], 64], strides: [64, 1]
// CHECK:         %[[FOURS:.*]] = affine.apply #{{.*}}(%[[N]])
// CHECK:         %[[ALONG:.*]] = arith.divui %[[N]], %{{.*}} : index
// CHECK:         %[[REST:.*]] = arith.remui %[[N]], %{{.*}} : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[ALONG]], %{{.*}} : index
// CHECK:         %[[ONES:.*]] = arith.divui %[[REST]], %{{.*}} : index
// CHECK:         %[[SECOND:.*]] = arith.muli %[[ONES]], %{{.*}} : index
// CHECK:         %[[ALL:.*]] = arith.addi %[[FIRST]], %[[SECOND]] : index
// CHECK:         %[[SOME:.*]] = arith.maxui %[[ALL]], %{{.*}} : index
// CHECK:         arith.muli %[[LO]], %[[FIRST]]
// CHECK:         arith.muli %[[HI]], %[[FIRST]]
// CHECK:         %[[LOW:.*]] = arith.muli %[[LO]], %[[SECOND]]
// CHECK:         %[[FROM:.*]] = arith.divui %[[LOW]], %[[SOME]] : index
// CHECK:         %[[HIGH:.*]] = arith.muli %[[HI]], %[[SECOND]]
// CHECK:         %[[TO:.*]] = arith.divui %[[HIGH]], %[[SOME]] : index
// CHECK:         scf.for
// CHECK:           memref.subview %{{.*}}[%{{.*}}, 0] [4, 64] [1, 1] : memref<?x64xf32>
// CHECK:         arith.subi %[[N]], %[[FOURS]] : index
// CHECK:         scf.for %{{.*}} = %[[FROM]] to %[[TO]]
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

// Columns come next among whole tiles, and rows among those that are left: these read the
// same columns of a weight.
//
// CHECK-LABEL: func.func @kernel_1(
// CHECK-SAME:    %{{.*}}: memref<1x64xf32>, %[[N:.*]]: index, %{{.*}}: index, %{{.*}}: index)
// CHECK:         scf.for %[[T:.*]] = %{{.*}} to
// CHECK-NEXT:      %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT:      arith.remui %[[T]], %[[TWO]]
// CHECK:         %[[LEFT:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK:         %[[ROWS:.*]] = arith.divui %[[LEFT]], %{{.*}} : index
// CHECK:         scf.for %[[U:.*]] = %{{.*}} to
// CHECK-NEXT:      arith.remui %[[U]], %[[ROWS]]
func.func @kernel_1(%d: memref<?x64xf32>) -> memref<?x64xf32>
    attributes {tile_graph.kernel, tile_graph.parts = 2 : i64,
        tile_graph.runtime = {beside = 2 : i64, extent = 41 : i64, step = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %d, %c0 : memref<?x64xf32>
  %whole = affine.apply #fours(%n)
  scf.forall (%i, %j) = (0, 0) to (%whole, 64) step (4, 32) {
    %y = memref.subview %d[%i, %j] [4, 32] [1, 1]
        : memref<?x64xf32> to memref<4x32xf32, strided<[64, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%y : memref<4x32xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>, #gpu.block<linear_dim_1>]}
  scf.forall (%i, %j) = (%whole, 0) to (%n, 64) step (1, 32) {
    %y = memref.subview %d[%i, %j] [1, 32] [1, 1]
        : memref<?x64xf32> to memref<1x32xf32, strided<[64, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%y : memref<1x32xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>, #gpu.block<linear_dim_1>]}
  return %d : memref<?x64xf32>
}
