// RUN: magweld-opt --split-input-file --verify-diagnostics --place-shared-memory="capacity=192" %s | filecheck %s

!a = memref<16xf32, #gpu.address_space<workgroup>>
!b = memref<5xf32, #gpu.address_space<workgroup>>

// The third buffer takes the place of the first, which is dead by then; 20 bytes of
// the second are rounded up to the alignment.
// CHECK-LABEL: func.func @reuse(
// CHECK-SAME:      magweld.shared_bytes = 96 : i64
// CHECK:           %[[SHARED:.+]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// CHECK:           %[[C0:.+]] = arith.constant 0 : index
// CHECK:           %[[A:.+]] = memref.view %[[SHARED]][%[[C0]]][] : {{.+}} to memref<16xf32,
// CHECK:           %[[C64:.+]] = arith.constant 64 : index
// CHECK:           %[[B:.+]] = memref.view %[[SHARED]][%[[C64]]][] : {{.+}} to memref<5xf32,
// CHECK:           %[[C0B:.+]] = arith.constant 0 : index
// CHECK:           %[[C:.+]] = memref.view %[[SHARED]][%[[C0B]]][] : {{.+}} to memref<16xf32,
// CHECK-NOT:       memref.alloc
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[A]] :
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[B]] :
// CHECK:           linalg.exp ins(%[[A]] :
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[C]] :
// CHECK:           linalg.exp ins(%[[B]] : {{.+}}) outs(%[[B]] :
func.func @reuse(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %a = memref.alloc() : !a
    linalg.fill ins(%v : f32) outs(%a : !a)
    %b = memref.alloc() : !b
    linalg.fill ins(%v : f32) outs(%b : !b)
    linalg.exp ins(%a : !a) outs(%a : !a)
    %c = memref.alloc() : !a
    linalg.fill ins(%v : f32) outs(%c : !a)
    linalg.exp ins(%b : !b) outs(%b : !b)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!a = memref<16xf32, #gpu.address_space<workgroup>>
!t = memref<8x64xf16, #gpu.address_space<workgroup>>

// Where a tile is swizzled, buffers begin at multiples of 1024 bytes; but here there is
// no room for two of them.
// expected-error @+2 {{expected tiles of at most 192 bytes of shared memory, got 2048 bytes in 2 buffers, the largest of 1024}}
func.func @swizzled(%v: f32, %h: f16) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %a = memref.alloc() : !a
    linalg.fill ins(%v : f32) outs(%a : !a)
    %t = memref.alloc() {tile_graph.swizzled} : !t
    linalg.fill ins(%h : f16) outs(%t : !t)
    linalg.exp ins(%a : !a) outs(%a : !a)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!a = memref<16xf32, #gpu.address_space<workgroup>>

// A buffer that a loop updates lives through the whole loop.
// CHECK-LABEL: func.func @carried(
// CHECK-SAME:      magweld.shared_bytes = 128 : i64
func.func @carried(%v: f32, %l: index, %u: index, %s: index) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %a = memref.alloc() : !a
    scf.for %k = %l to %u step %s {
      linalg.exp ins(%a : !a) outs(%a : !a)
      %b = memref.alloc() : !a
      linalg.fill ins(%v : f32) outs(%b : !a)
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// CHECK-LABEL: func.func @nothing(
// CHECK-SAME:      magweld.shared_bytes = 0 : i64
// CHECK-NOT:       gpu.dynamic_shared_memory
func.func @nothing() attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!a = memref<32xf32, #gpu.address_space<workgroup>>

func.func @too_large(%v: f32) attributes {tile_graph.kernel} {
  // expected-error @+1 {{'scf.forall' op expected tiles of at most 192 bytes of shared memory, got 256 bytes in 2 buffers, the largest of 128}}
  scf.forall (%n) in (1) {
    %a = memref.alloc() : !a
    %b = memref.alloc() : !a
    linalg.fill ins(%v : f32) outs(%a : !a)
    linalg.exp ins(%a : !a) outs(%b : !a)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!a = memref<4x4xf32, #gpu.address_space<workgroup>>
!row = memref<1x4xf32, strided<[4, 1], offset: ?>, #gpu.address_space<workgroup>>

// Rows lie five elements apart, for who takes slices as well: 4 x 5 x 4 bytes.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:      magweld.shared_bytes = 80 : i64
// CHECK:           %[[VIEW:.+]] = memref.view %{{.+}} to memref<4x5xf32,
// CHECK:           %[[TILE:.+]] = memref.subview %[[VIEW]][0, 0] [4, 4] [1, 1] : {{.+}} to memref<4x4xf32, strided<[5, 1]>,
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[TILE]] :
// CHECK:           memref.subview %[[TILE]][%{{.+}}, 0] [1, 4] [1, 1] : {{.+}} to memref<1x4xf32, strided<[5, 1], offset: ?>,
func.func @padded(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %a = memref.alloc() {magweld.padding = 1 : i64} : !a
    linalg.fill ins(%v : f32) outs(%a : !a)
    scf.forall (%i) in (4) {
      %s = memref.subview %a[%i, 0] [1, 4] [1, 1] : !a to !row
      linalg.exp ins(%s : !row) outs(%s : !row)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!a = memref<12x4xf32, #gpu.address_space<workgroup>>

// With its padding the tile would take 240 of 192 bytes.
// CHECK-LABEL: func.func @no_room(
// CHECK-SAME:      magweld.shared_bytes = 192 : i64
// CHECK:           memref.view %{{.+}} to memref<12x4xf32,
func.func @no_room(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %a = memref.alloc() {magweld.padding = 1 : i64} : !a
    linalg.fill ins(%v : f32) outs(%a : !a)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
