// RUN: magweld-opt --split-input-file --stage-results %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The first result is read again: it has a buffer, and what writes it writes both. The
// second one is written by one operation, and nobody reads it.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:      %[[X:[^:]+]]: memref<64x32xf32>, %[[S:[^:]+]]: memref<64x32xf32>, %[[N:[^:]+]]: memref<64x32xf32>)
// CHECK:         scf.forall
// CHECK:           %[[TILE:.+]] = memref.subview %[[S]]
// CHECK:           %[[BUFFER:.+]] = memref.alloc() : memref<8x32xf32>
// CHECK:           linalg.generic {{.+}} ins(%{{.+}}) outs(%[[BUFFER]], %[[TILE]] : {{.+}}) attrs = {{.*}}tile_graph.nontemporal_stores = [1]}
// CHECK:             %[[SUM:.+]] = arith.addf
// CHECK:             linalg.yield %[[SUM]], %[[SUM]] : f32, f32
// CHECK:           linalg.generic {{.+}} ins(%[[BUFFER]] : memref<8x32xf32>) outs(%{{.+}} : memref<8xf32>) {
// CHECK:           %[[OTHER:.+]] = memref.subview %[[N]]
// CHECK:           linalg.generic {{.+}} ins(%[[BUFFER]], %{{.+}}) outs(%[[OTHER]] : {{.+}}) attrs = {{.*}}tile_graph.nontemporal_stores = [0]}
func.func @two(%x: memref<64x32xf32>, %s: memref<64x32xf32>, %n: memref<64x32xf32>) -> (memref<64x32xf32>, memref<64x32xf32>) attributes {tile_graph.kernel, tile_graph.nontemporal = [0, 1]} {
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %u : f32
      linalg.yield %0 : f32
    }
    %m = memref.alloc() : memref<8xf32>
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%m : memref<8xf32>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %o : f32
      linalg.yield %0 : f32
    }
    %d = memref.subview %n[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %m : memref<8x32xf32, strided<[32, 1], offset: ?>>, memref<8xf32>) outs(%d : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %0 = arith.mulf %u, %v : f32
      linalg.yield %0 : f32
    }
  }
  return %s, %n : memref<64x32xf32>, memref<64x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// What is written twice has a buffer, which is copied behind the second time.
// CHECK-LABEL: func.func @in_its_place(
// CHECK-SAME:      %{{.+}}: memref<64x32xf32>, %[[S:.+]]: memref<64x32xf32>)
// CHECK:           %[[TILE:.+]] = memref.subview %[[S]]
// CHECK:           %[[BUFFER:.+]] = memref.alloc() : memref<8x32xf32>
// CHECK:           linalg.generic {{.+}} ins(%[[BUFFER]] : {{.+}}) outs(%[[BUFFER]] : memref<8x32xf32>)
// CHECK:           linalg.generic {{.+}} ins(%[[BUFFER]] : {{.+}}) outs(%[[TILE]] : {{.+}}) attrs = {{.*}}tile_graph.nontemporal_stores = [0]}
func.func @in_its_place(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel, tile_graph.nontemporal = [0]} {
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %u : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.mulf %u, %u : f32
      linalg.yield %0 : f32
    }
  }
  return %s : memref<64x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// The result of another kernel stays as it is, and so does one that is not named.
// CHECK-LABEL: func.func @not_named(
// CHECK-NOT:     nontemporal_stores
// CHECK:         return
func.func @not_named(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel} {
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %u : f32
      linalg.yield %0 : f32
    }
  }
  return %s : memref<64x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Two views of one result in a tile, or none at all: it is stored as others are.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:      magweld.remarks = ["a result is not stored past the caches: its tiles are no plain views, one for each loop over tiles"]
// CHECK-NOT:     nontemporal_stores
// CHECK-NOT:     memref.alloc
// CHECK:         return
func.func @halves(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel, tile_graph.nontemporal = [0]} {
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 16] [1, 1] : memref<64x32xf32> to memref<8x16xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 16] [1, 1] : memref<64x32xf32> to memref<8x16xf32, strided<[32, 1], offset: ?>>
    %v = memref.subview %s[%i, 16] [8, 16] [1, 1] : memref<64x32xf32> to memref<8x16xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x16xf32, strided<[32, 1], offset: ?>>) outs(%t, %v : memref<8x16xf32, strided<[32, 1], offset: ?>>, memref<8x16xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32, %w: f32):
      linalg.yield %u, %u : f32, f32
    }
  }
  return %s : memref<64x32xf32>
}

// CHECK-LABEL: func.func @whole(
// CHECK-SAME:      magweld.remarks
// CHECK-NOT:     nontemporal_stores
func.func @whole(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel, tile_graph.nontemporal = [0]} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x32xf32>) outs(%s : memref<64x32xf32>) {
  ^bb0(%u: f32, %o: f32):
    linalg.yield %u : f32
  }
  return %s : memref<64x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// The first operation reads what was in the result before.
// CHECK-LABEL: func.func @read_first(
// CHECK-SAME:      magweld.remarks
// CHECK-NOT:     nontemporal_stores
// CHECK-NOT:     memref.alloc
// CHECK:         return
func.func @read_first(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel, tile_graph.nontemporal = [0]} {
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %o : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.mulf %u, %u : f32
      linalg.yield %0 : f32
    }
  }
  return %s : memref<64x32xf32>
}

// A view in a loop beside another view of the same result: they may be the same memory.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME:      magweld.remarks
// CHECK-NOT:     nontemporal_stores
// CHECK-NOT:     memref.alloc
// CHECK:         return
func.func @nested(%x: memref<64x32xf32>, %s: memref<64x32xf32>) -> memref<64x32xf32> attributes {tile_graph.kernel, tile_graph.nontemporal = [0]} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.forall (%i) = (0) to (64) step (8) {
    %p = memref.subview %x[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    %t = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%t : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      linalg.yield %u : f32
    }
    scf.for %j = %zero to %two step %one {
      %v = memref.subview %s[%i, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<8x32xf32, strided<[32, 1], offset: ?>>) outs(%v : memref<8x32xf32, strided<[32, 1], offset: ?>>) {
      ^bb0(%u: f32, %o: f32):
        linalg.yield %u : f32
      }
    }
  }
  return %s : memref<64x32xf32>
}
