// RUN: magweld-opt --split-input-file --verify-diagnostics --place-allocations="stack-bytes=1024" %s | filecheck %s

// The small buffer goes on the stack, the large one is allocated once per call.
// CHECK-LABEL: func.func @two_buffers(
// CHECK-DAG:     %[[LARGE:.+]] = memref.alloc() : memref<1024xf32>
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

func.func @dynamic(%n: index) attributes {tile_graph.kernel} {
  // expected-error @+1 {{'memref.alloc' op expected a static size inside a kernel}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}
