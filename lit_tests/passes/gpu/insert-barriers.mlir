// RUN: magweld-opt --split-input-file --insert-barriers %s | filecheck %s

!tile = memref<4x8xf32, #gpu.address_space<workgroup>>
!own = memref<1x1xf32, strided<[32, 8], offset: ?>, #gpu.address_space<workgroup>>
!row = memref<1x8xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// A thread reads back its own element without a barrier, a whole row with one.
// CHECK-LABEL: func.func @read_after_write(
// CHECK:           scf.forall
// CHECK:             linalg.fill
// CHECK-NOT:       gpu.barrier
// CHECK:             linalg.exp
// CHECK:           gpu.barrier
// CHECK-NEXT:      scf.forall
// CHECK:             linalg.log
// CHECK-NOT:       gpu.barrier
func.func @read_after_write(%v: f32, %out: memref<4x8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i, %j] [1, 1] [4, 8] : !tile to !own
      linalg.fill ins(%v : f32) outs(%s : !own)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i, %j] [1, 1] [4, 8] : !tile to !own
      linalg.exp ins(%s : !own) outs(%s : !own)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i) in (4) {
      %s = memref.subview %t[%i, 0] [1, 8] [4, 1] : !tile to !row
      %o = memref.subview %out[%i, 0] [1, 8] [4, 1] : memref<4x8xf32> to memref<1x8xf32, strided<[32, 1], offset: ?>>
      linalg.log ins(%s : !row) outs(%o : memref<1x8xf32, strided<[32, 1], offset: ?>>)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8xf32, #gpu.address_space<workgroup>>
!own = memref<1xf32, strided<[8], offset: ?>, #gpu.address_space<workgroup>>

// The next iteration must not overwrite what threads still read in this one.
// CHECK-LABEL: func.func @around_the_loop(
// CHECK:           scf.for %
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        scf.forall
// CHECK:               linalg.fill
// CHECK:             gpu.barrier
// CHECK-NEXT:        scf.forall
// CHECK:               linalg.dot
// CHECK-NOT:       gpu.barrier
func.func @around_the_loop(%v: f32, %l: index, %u: index, %s: index, %out: memref<f32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %l to %u step %s {
      scf.forall (%i) in (8) {
        %p = memref.subview %t[%i] [1] [8] : !tile to !own
        linalg.fill ins(%v : f32) outs(%p : !own)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.dot ins(%t, %t : !tile, !tile) outs(%out : memref<f32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!bytes = memref<?xi8, #gpu.address_space<workgroup>>
!tile = memref<8xf32, #gpu.address_space<workgroup>>

// Views that share bytes depend on each other, views that do not are independent.
// CHECK-LABEL: func.func @placed(
// CHECK:           linalg.fill
// CHECK-NOT:       gpu.barrier
// CHECK:           linalg.exp
// CHECK:           gpu.barrier
// CHECK-NEXT:      scf.forall
// CHECK:             linalg.log
func.func @placed(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %shared = gpu.dynamic_shared_memory : !bytes
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %a = memref.view %shared[%c0][] : !bytes to !tile
    %b = memref.view %shared[%c48][] : !bytes to !tile
    %c = memref.view %shared[%c16][] : !bytes to !tile
    scf.forall (%i) in (1) {
      linalg.fill ins(%v : f32) outs(%a : !tile)
    } {mapping = [#gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (1, 1) {
      linalg.exp ins(%b : !tile) outs(%b : !tile)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (1, 1) {
      linalg.log ins(%c : !tile) outs(%c : !tile)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!ring = memref<12xf32, #gpu.address_space<workgroup>>
!slot = memref<4xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>

// One slot is written while another one is read: what waits is the next step alone, at
// its begin.
// CHECK-LABEL: func.func @other_slot(
// CHECK:           scf.for
// CHECK:             gpu.barrier
// CHECK:             linalg.fill
// CHECK-NOT:         gpu.barrier
// CHECK:             linalg.exp
// CHECK-LABEL: func.func @same_slot(
// CHECK:             linalg.fill
// CHECK:             gpu.barrier
// CHECK:             linalg.exp
func.func @other_slot(%v: f32, %out: memref<4xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !ring
    scf.for %k = %c0 to %c8 step %c1 {
      %a = affine.apply affine_map<(d0) -> (((d0 + 2) mod 3) * 4)>(%k)
      %later = memref.subview %t[%a] [4] [1] : !ring to !slot
      %b = affine.apply affine_map<(d0) -> ((d0 mod 3) * 4)>(%k)
      %now = memref.subview %t[%b] [4] [1] : !ring to !slot
      scf.forall (%i) in (1) {
        linalg.fill ins(%v : f32) outs(%later : !slot)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%now : !slot) outs(%out : memref<4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// They meet in the last step.
func.func @same_slot(%v: f32, %out: memref<4xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !ring
    scf.for %k = %c0 to %c8 step %c1 {
      %a = affine.apply affine_map<(d0) -> ((d0 floordiv 7) * 4)>(%k)
      %later = memref.subview %t[%a] [4] [1] : !ring to !slot
      %b = affine.apply affine_map<(d0) -> (4 + (d0 floordiv 7) * 3)>(%k)
      %now = memref.subview %t[%b] [4] [1] : !ring to !slot
      scf.forall (%i) in (1) {
        linalg.fill ins(%v : f32) outs(%later : !slot)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%now : !slot) outs(%out : memref<4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
