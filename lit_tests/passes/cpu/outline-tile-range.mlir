// RUN: magweld-opt --split-input-file --outline-tile-range --canonicalize %s | filecheck %s

// Tiles are numbered row-major over the grid.
// CHECK-LABEL: func.func @grid(
// CHECK-SAME:      %[[A:.+]]: memref<64x8xf32>, %[[OUT:.+]]: memref<64x8xf32>, %[[LO:.+]]: index, %[[HI:.+]]: index)
// CHECK-SAME:      magweld.tiles = 8 : i64
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[C16:.+]] = arith.constant 16 : index
// CHECK:         scf.for %[[T:.+]] = %[[LO]] to %[[HI]] step %[[C1]] {
// CHECK:           %[[COLUMN:.+]] = arith.remui %[[T]], %[[C2]]
// CHECK:           %[[REST:.+]] = arith.divui %[[T]], %[[C2]]
// CHECK:           %[[J:.+]] = arith.muli %[[COLUMN]], %[[C4]]
// CHECK:           %[[ROW:.+]] = arith.remui %[[REST]], %[[C4]]
// CHECK:           %[[I:.+]] = arith.muli %[[ROW]], %[[C16]]
// CHECK:           memref.subview %[[A]][%[[I]], %[[J]]]
// CHECK:         return
// CHECK-NOT:     scf.forall
func.func @grid(%a: memref<64x8xf32>, %out: memref<64x8xf32>) -> memref<64x8xf32> attributes {tile_graph.kernel} {
  scf.forall (%i, %j) = (0, 0) to (64, 8) step (16, 4) {
    %s = memref.subview %a[%i, %j] [16, 4] [1, 1] : memref<64x8xf32> to memref<16x4xf32, strided<[8, 1], offset: ?>>
    %d = memref.subview %out[%i, %j] [16, 4] [1, 1] : memref<64x8xf32> to memref<16x4xf32, strided<[8, 1], offset: ?>>
    memref.copy %s, %d : memref<16x4xf32, strided<[8, 1], offset: ?>> to memref<16x4xf32, strided<[8, 1], offset: ?>>
  }
  return %out : memref<64x8xf32>
}

// -----

// A result elsewhere is copied to its destination, and the whole kernel is one tile.
// CHECK-LABEL: func.func @elsewhere(
// CHECK-SAME:      %[[OUT:[^:]+]]: memref<8xf32>, %{{.+}}: index, %{{.+}}: index)
// CHECK-SAME:      magweld.remarks = ["runs as one tile: it has 0 loops over tiles"]
// CHECK-SAME:      magweld.tiles = 1 : i64
// CHECK:         %[[BUFFER:.+]] = memref.alloc()
// CHECK:         memref.copy %[[BUFFER]], %[[OUT]]
// CHECK-NEXT:    return
func.func @elsewhere(%out: memref<8xf32>) -> memref<8xf32> attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<8xf32>
  return %b : memref<8xf32>
}

// -----

// A write beside the loop would be repeated by every range: such a kernel stays whole.
// CHECK-LABEL: func.func @fill_beside(
// CHECK-SAME:      magweld.remarks = ["runs as one tile: 'linalg.fill' stands beside the loop over tiles"]
// CHECK-SAME:      magweld.tiles = 1 : i64
// CHECK:         scf.forall
func.func @fill_beside(%out: memref<8xf32>) -> memref<8xf32> attributes {tile_graph.kernel} {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%out : memref<8xf32>)
  scf.forall (%i) = (0) to (8) step (4) {
    %d = memref.subview %out[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.exp ins(%d : memref<4xf32, strided<[1], offset: ?>>) outs(%d : memref<4xf32, strided<[1], offset: ?>>)
  }
  return %out : memref<8xf32>
}

// -----

// Tiles of two shapes have loops of their own, which are numbered one after another: five
// tiles of three elements, then one of one.
// CHECK-LABEL: func.func @shapes(
// CHECK-SAME:      %[[OUT:[^:]+]]: memref<16xf32>, %[[LO:.+]]: index, %[[HI:.+]]: index)
// CHECK-SAME:      magweld.tiles = 6 : i64
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[C5:.+]] = arith.constant 5 : index
// CHECK:         %[[LEAST:.+]] = arith.maxsi %[[LO]], %[[C0]]
// CHECK:         %[[FROM:.+]] = arith.minsi %[[LEAST]], %[[C5]]
// CHECK:         %[[MOST:.+]] = arith.maxsi %[[HI]], %[[C0]]
// CHECK:         %[[TO:.+]] = arith.minsi %[[MOST]], %[[C5]]
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %[[TO]] step %[[C1]] {
// CHECK:           memref.subview %[[OUT]][%{{.+}}] [3]
// CHECK:         %[[BEHIND:.+]] = arith.subi %[[LO]], %[[C5]]
// CHECK:         arith.maxsi %[[BEHIND]], %[[C0]]
// CHECK:         scf.for
// CHECK:           memref.subview %[[OUT]][15] [1]
// CHECK-NOT:     scf.forall
func.func @shapes(%out: memref<16xf32>) -> memref<16xf32> attributes {tile_graph.kernel, tile_graph.parts = 2 : i64} {
  scf.forall (%i) = (0) to (15) step (3) {
    %d = memref.subview %out[%i] [3] [1] : memref<16xf32> to memref<3xf32, strided<[1], offset: ?>>
    linalg.exp ins(%d : memref<3xf32, strided<[1], offset: ?>>) outs(%d : memref<3xf32, strided<[1], offset: ?>>)
  }
  scf.forall (%i) = (15) to (16) step (1) {
    %d = memref.subview %out[%i] [1] [1] : memref<16xf32> to memref<1xf32, strided<[1], offset: ?>>
    linalg.exp ins(%d : memref<1xf32, strided<[1], offset: ?>>) outs(%d : memref<1xf32, strided<[1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %out : memref<16xf32>
}

// -----

// Other loops side by side may depend on each other: such a kernel is one tile.
// CHECK-LABEL: func.func @two_loops(
// CHECK-SAME:      magweld.remarks = ["runs as one tile: it has 2 loops over tiles"]
// CHECK-SAME:      magweld.tiles = 1 : i64
func.func @two_loops(%out: memref<16xf32>) -> memref<16xf32> attributes {tile_graph.kernel} {
  scf.forall (%i) = (0) to (16) step (4) {
    %d = memref.subview %out[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.exp ins(%d : memref<4xf32, strided<[1], offset: ?>>) outs(%d : memref<4xf32, strided<[1], offset: ?>>)
  }
  scf.forall (%i) = (0) to (16) step (8) {
    %d = memref.subview %out[%i] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.exp ins(%d : memref<8xf32, strided<[1], offset: ?>>) outs(%d : memref<8xf32, strided<[1], offset: ?>>)
  }
  return %out : memref<16xf32>
}

// -----

// What is no kernel is left alone.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      %{{.+}}: memref<8xf32>) -> memref<8xf32>
func.func @main(%out: memref<8xf32>) -> memref<8xf32> {
  return %out : memref<8xf32>
}
