// RUN: magweld-opt --split-input-file --keep-tiles-in-registers="elements=4" %s | filecheck %s

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!part = memref<2x2xf32, strided<[32, 4], offset: ?>, #gpu.address_space<workgroup>>
!other = memref<1x4xf32, strided<[64, 2], offset: ?>, #gpu.address_space<workgroup>>

// All thread loops take the same slice: each thread keeps its own.
// CHECK-LABEL: func.func @own_slices(
// CHECK-NEXT:    scf.forall
// CHECK-NEXT:      %[[REG:.+]] = memref.alloca() : memref<2x2xf32, #gpu.address_space<private>>
// CHECK-NEXT:      scf.for
// CHECK-NOT:         memref.alloc()
// CHECK-NOT:         memref.subview
// CHECK:             linalg.fill ins(%{{.+}}) outs(%[[REG]] :
// CHECK:           linalg.exp ins(%[[REG]] : {{.+}}) outs(%[[REG]] :
func.func @own_slices(%v: f32, %a: index, %b: index, %c: index) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %a to %b step %c {
      scf.forall (%i, %j) in (4, 4) {
        %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
        linalg.fill ins(%v : f32) outs(%s : !part)
      } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    }
    scf.forall (%i, %j) in (4, 4) {
      %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
      linalg.exp ins(%s : !part) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!part = memref<2x2xf32, strided<[32, 4], offset: ?>, #gpu.address_space<workgroup>>
!other = memref<1x4xf32, strided<[64, 2], offset: ?>, #gpu.address_space<workgroup>>

// A loop that shares the tile in another way reads other threads' elements.
// CHECK-LABEL: func.func @other_slices(
// CHECK:           memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
func.func @other_slices(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 4) {
      %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
      linalg.fill ins(%v : f32) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (8, 2) {
      %s = memref.subview %t[%i, %j] [1, 4] [8, 2] : !tile to !other
      linalg.exp ins(%s : !other) outs(%s : !other)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!half = memref<2x8xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// Threads of one row write the same elements, and 16 are too many for registers.
// CHECK-LABEL: func.func @overlapping_or_large(
// CHECK-COUNT-2:   memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
func.func @overlapping_or_large(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    %u = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 4) {
      %s = memref.subview %t[%i, 0] [2, 8] [4, 1] : !tile to !half
      linalg.fill ins(%v : f32) outs(%s : !half)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i) in (4) {
      %s = memref.subview %u[%i, 0] [2, 8] [4, 1] : !tile to !half
      linalg.fill ins(%v : f32) outs(%s : !half)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
