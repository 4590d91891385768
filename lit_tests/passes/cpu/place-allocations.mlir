// RUN: magweld-opt --split-input-file --verify-diagnostics --place-allocations="stack-bytes=1024" %s | filecheck %s

// The small buffer goes on the stack, the large one is allocated once per call.
// CHECK-LABEL: func.func @two_buffers(
// CHECK-SAME:      magweld.scratch_bytes = 4096 : i64, {{.*}}tile_graph.placed_bytes = 4352 : i64
// CHECK-DAG:     %[[LARGE:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1024xf32>
// CHECK-DAG:     %[[SMALL:.+]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK:         scf.for
// CHECK-NOT:       memref.alloc
// CHECK:           memref.store %{{.+}}, %[[SMALL]]
// CHECK:           memref.store %{{.+}}, %[[LARGE]]
// CHECK:         memref.dealloc %[[LARGE]]
// CHECK-NEXT:    return
func.func @two_buffers(%x: f32, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %t = %lo to %hi step %c1 {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<1024xf32>
    memref.store %x, %a[%c1] : memref<64xf32>
    memref.store %x, %b[%c1] : memref<1024xf32>
  }
  return
}

// -----

// A chain: the first buffer is free when the third is written, and the fourth has the
// place of the second, in another shape. Places lie one behind the other.
//
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:      magweld.scratch_bytes = 8192 : i64, {{.*}}tile_graph.placed_bytes = 8192 : i64
// CHECK:         %[[B:.+]] = memref.alloc() {alignment = 64 : i64, tile_graph.place = #tile_graph.place<"l2", 4096 : i64, 4096 : i64, 64 : i64>} : memref<4096xi8>
// CHECK:         %[[FOURTH:.+]] = memref.view %[[B]][%{{.+}}][] : memref<4096xi8> to memref<16x32xf32>
// CHECK:         %[[SECOND:.+]] = memref.view %[[B]][%{{.+}}][] : memref<4096xi8> to memref<1024xf32>
// CHECK:         %[[A:.+]] = memref.alloc() {alignment = 64 : i64, tile_graph.place = #tile_graph.place<"l2", 0 : i64, 4096 : i64, 64 : i64>} : memref<1024xf32>
// CHECK:         scf.for
// CHECK:           memref.store %{{.+}}, %[[A]]
// CHECK:           memref.copy %[[A]], %[[SECOND]]
// CHECK:           memref.copy %[[SECOND]], %[[A]]
// CHECK:           memref.store %{{.+}}, %[[FOURTH]]
// CHECK:           memref.load %[[A]]
// CHECK-NEXT:      memref.store %{{.+}}, %[[FOURTH]]
// CHECK:         memref.dealloc
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    return
func.func @chain(%x: f32, %lo: index, %hi: index) attributes {tile_graph.kernel, tile_graph.level = "l2"} {
  %c1 = arith.constant 1 : index
  scf.for %t = %lo to %hi step %c1 {
    %a = memref.alloc() : memref<1024xf32>
    memref.store %x, %a[%c1] : memref<1024xf32>
    %b = memref.alloc() : memref<1024xf32>
    memref.copy %a, %b : memref<1024xf32> to memref<1024xf32>
    %c = memref.alloc() : memref<1024xf32>
    memref.copy %b, %c : memref<1024xf32> to memref<1024xf32>
    %d = memref.alloc() : memref<16x32xf32>
    memref.store %x, %d[%c1, %c1] : memref<16x32xf32>
    %0 = memref.load %c[%c1] : memref<1024xf32>
    memref.store %0, %d[%c1, %c1] : memref<16x32xf32>
  }
  return
}

// -----

// None of these share: a view that is read at last, what one iteration of an inner loop
// leaves to the next, what a branch gives a view of, and what lives through the loop.
//
// CHECK-LABEL: func.func @apart(
// CHECK-SAME:      magweld.scratch_bytes = 20480 : i64
// CHECK-COUNT-5: memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
func.func @apart(%x: f32, %lo: index, %hi: index, %which: i1) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %through = memref.alloc() : memref<1024xf32>
  memref.store %x, %through[%c1] : memref<1024xf32>
  scf.for %t = %lo to %hi step %c1 {
    %viewed = memref.alloc() : memref<1024xf32>
    %view = memref.subview %viewed[8] [8] [1] : memref<1024xf32> to memref<8xf32, strided<[1], offset: 8>>
    memref.store %x, %viewed[%c1] : memref<1024xf32>
    %given = memref.alloc() : memref<1024xf32>
    memref.store %x, %given[%c1] : memref<1024xf32>
    %part = scf.if %which -> memref<8xf32, strided<[1], offset: 8>> {
      %one = memref.subview %given[8] [8] [1] : memref<1024xf32> to memref<8xf32, strided<[1], offset: 8>>
      scf.yield %one : memref<8xf32, strided<[1], offset: 8>>
    } else {
      scf.yield %view : memref<8xf32, strided<[1], offset: 8>>
    }
    %left = memref.alloc() : memref<1024xf32>
    scf.for %i = %lo to %hi step %c1 {
      %0 = memref.load %left[%c1] : memref<1024xf32>
      %own = memref.alloc() : memref<1024xf32>
      memref.store %0, %own[%c1] : memref<1024xf32>
      %1 = memref.load %own[%c1] : memref<1024xf32>
      memref.store %1, %left[%c1] : memref<1024xf32>
    }
    %2 = memref.load %view[%c1] : memref<8xf32, strided<[1], offset: 8>>
    memref.store %2, %part[%c1] : memref<8xf32, strided<[1], offset: 8>>
    %3 = memref.load %through[%c1] : memref<1024xf32>
    memref.store %3, %part[%c0] : memref<8xf32, strided<[1], offset: 8>>
  }
  return
}

// -----

func.func @dynamic(%n: index) attributes {tile_graph.kernel} {
  // expected-error @+1 {{'memref.alloc' op expected a static size inside a kernel}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

// On the stack those of one type share a place; what streams past the tiles lies in the
// level that the plan names.
//
// CHECK-LABEL: func.func @small(
// CHECK-SAME:      tile_graph.placed_bytes = 512 : i64
// CHECK-DAG:     memref.alloca() {alignment = 64 : i64, tile_graph.place = #tile_graph.place<"dram", 0 : i64, 128 : i64, 64 : i64>} : memref<32xf32>
// CHECK-DAG:     %[[WIDE:.+]] = memref.alloca() {{.+}} : memref<32xf64>
// CHECK-DAG:     %[[ONE:.+]] = memref.alloca() {{.+}} : memref<64xf32>
// CHECK:         scf.for
// CHECK-NOT:       memref.alloc
// CHECK:           memref.store %{{.+}}, %[[ONE]]
// CHECK:           memref.store %{{.+}}, %[[ONE]]
// CHECK:           memref.store %{{.+}}, %[[WIDE]]
func.func @small(%x: f32, %z: f64, %lo: index, %hi: index) attributes {tile_graph.kernel, tile_graph.level = "l2"} {
  %c1 = arith.constant 1 : index
  scf.for %t = %lo to %hi step %c1 {
    %a = memref.alloc() : memref<64xf32>
    memref.store %x, %a[%c1] : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    memref.store %x, %b[%c1] : memref<64xf32>
    %c = memref.alloc() : memref<32xf64>
    memref.store %z, %c[%c1] : memref<32xf64>
    %d = memref.alloc() {tile_graph.place = #tile_graph.place<"dram", 4096, 128, 64>} : memref<32xf32>
    memref.store %x, %d[%c1] : memref<32xf32>
  }
  return
}
