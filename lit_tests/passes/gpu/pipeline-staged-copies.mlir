// RUN: magweld-opt --split-input-file --pipeline-staged-copies="capacity=4096" %s | filecheck %s

!tile = memref<8x4xf32, #gpu.address_space<workgroup>>
!step = memref<8x4xf32, strided<[64, 1], offset: ?>>
!own = memref<1x4xf32, strided<[64, 1], offset: ?>>
!row = memref<1x4xf32, strided<[4, 1], offset: ?>, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Two steps are on their way while one is computed with: a ring of three slots.
// CHECK-DAG:   #[[$SLOT:.*]] = affine_map<(d0) -> (((d0 floordiv 4) mod 3) * 8)>
// CHECK-DAG:   #[[$AHEAD:.*]] = affine_map<(d0) -> (d0 + 8)>
// CHECK-LABEL: func.func @steps(
// CHECK:           %[[RING:.*]] = memref.alloc() : memref<24x4xf32, #gpu.address_space<workgroup>>
// CHECK:           arith.constant 0 : index
// CHECK:           linalg.generic {{.*}}magweld.vector_loop = 1 : i64, tile_graph.async_copy}
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           arith.constant 4 : index
// CHECK:           linalg.generic {{.*}}tile_graph.async_copy}
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:        nvvm.cp.async.wait.group 1
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        %[[END:.*]] = arith.constant 56 : index
// CHECK-NEXT:        %[[MORE:.*]] = arith.cmpi slt, %[[K]], %[[END]] : index
// CHECK-NEXT:        scf.if %[[MORE]] {
// CHECK-NEXT:          %[[LATER:.*]] = affine.apply #[[$AHEAD]](%[[K]])
// CHECK-NEXT:          memref.subview %{{.*}}[0, %[[LATER]]] [8, 4] [1, 1]
// CHECK-NEXT:          %[[NEXT:.*]] = affine.apply #[[$SLOT]](%[[LATER]])
// CHECK-NEXT:          memref.subview %[[RING]][%[[NEXT]], 0] [8, 4] [1, 1]
// CHECK:               linalg.generic {{.*}}tile_graph.async_copy}
// CHECK:             nvvm.cp.async.commit.group
// CHECK-NEXT:        %[[NOW:.*]] = affine.apply #[[$SLOT]](%[[K]])
// CHECK-NEXT:        memref.subview %[[RING]][%[[NOW]], 0] [8, 4] [1, 1]
// CHECK-NOT:         linalg.generic
// CHECK:             linalg.exp
func.func @steps(%x: memref<8x64xf32>, %r: memref<1x4xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    scf.for %k = %c0 to %c64 step %c4 {
      %t = memref.alloc() : !tile
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf32> to !step
      scf.forall (%i) in (8) {
        %a = memref.subview %s[%i, 0] [1, 4] [1, 1] : !step to !own
        %b = memref.subview %t[%i, 0] [1, 4] [1, 1] : !tile to !row
        linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
            ins(%a : !own) outs(%b : !row) attrs = {magweld.vector_loop = 1 : i64} {
        ^bb0(%in: f32, %old: f32):
          linalg.yield %in : f32
        }
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (8) {
        %b = memref.subview %t[%i, 0] [1, 4] [1, 1] : !tile to !row
        linalg.exp ins(%b : !row) outs(%r : memref<1x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x64xf32, #gpu.address_space<workgroup>>
!step = memref<8x64xf32, strided<[256, 1], offset: ?>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A slot has 2 KiB, and there are 4: two of them.
// CHECK-LABEL: func.func @room(
// CHECK:           memref.alloc() : memref<16x64xf32, #gpu.address_space<workgroup>>
// CHECK:           nvvm.cp.async.wait.group 0
func.func @room(%x: memref<8x256xf32>, %r: memref<8x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %c0 to %c256 step %c64 {
      %s = memref.subview %x[0, %k] [8, 64] [1, 1] : memref<8x256xf32> to !step
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !step) outs(%t : !tile)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%r : memref<8x64xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x4xf32, #gpu.address_space<workgroup>>
!step = memref<8x4xf32, strided<[64, 1], offset: ?>>
!halves = memref<8x4xf16, #gpu.address_space<workgroup>>
!narrow = memref<8x4xf16, strided<[64, 1], offset: ?>>

// Copies that are not made ahead: what is read behind the loop, what is read before it
// is copied, what is written in the kernel, elements of 2 bytes one by one, and all of
// them where the schedule says nothing.
// CHECK-LABEL: func.func @read_behind(
// CHECK-NOT:       nvgpu
// CHECK-LABEL: func.func @read_before(
// CHECK-NOT:       nvgpu
// CHECK-LABEL: func.func @written(
// CHECK-NOT:       nvgpu
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT:       nvgpu
// CHECK-LABEL: func.func @one_stage(
// CHECK-NOT:       nvgpu
func.func @read_behind(%x: memref<8x64xf32>, %r: memref<8x4xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %c0 to %c64 step %c4 {
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf32> to !step
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !step) outs(%t : !tile)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
    scf.forall (%i) in (1) {
      linalg.exp ins(%t : !tile) outs(%r : memref<8x4xf32>)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

func.func @read_before(%x: memref<8x64xf32>, %r: memref<8x4xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %c0 to %c64 step %c4 {
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf32> to !step
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%r : memref<8x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !step) outs(%t : !tile)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

func.func @written(%x: memref<8x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %c0 to %c64 step %c4 {
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf32> to !step
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !step) outs(%t : !tile)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%s : !step)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

func.func @narrow(%x: memref<8x64xf16>, %r: memref<8x4xf16>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !halves
    scf.for %k = %c0 to %c64 step %c4 {
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf16> to !narrow
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !narrow) outs(%t : !halves)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !halves) outs(%r : memref<8x4xf16>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

func.func @one_stage(%x: memref<8x64xf32>, %r: memref<8x4xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %c0 to %c64 step %c4 {
      %s = memref.subview %x[0, %k] [8, 4] [1, 1] : memref<8x64xf32> to !step
      scf.forall (%i) in (1) {
        linalg.copy ins(%s : !step) outs(%t : !tile)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%r : memref<8x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x4xf32, #gpu.address_space<workgroup>>
!few = memref<3x4xf32, strided<[64, 1], offset: ?>>
!many = memref<5x4xf32, strided<[64, 1], offset: ?>>
!first = memref<5x4xf32, strided<[4, 1]>, #gpu.address_space<workgroup>>
!last = memref<3x4xf32, strided<[4, 1], offset: 20>, #gpu.address_space<workgroup>>
!shared = memref<3x4xf32, strided<[4, 1], offset: 16>, #gpu.address_space<workgroup>>

// Two copies fill a tile: five rows and three.
// CHECK-LABEL: func.func @parts(
// CHECK:           memref.alloc() : memref<24x4xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-4:   tile_graph.async_copy
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK-COUNT-2:       tile_graph.async_copy
// CHECK:             linalg.exp
func.func @parts(%x: memref<8x64xf32>, %r: memref<8x4xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    scf.for %k = %c0 to %c64 step %c4 {
      %t = memref.alloc() : !tile
      %a = memref.subview %x[0, %k] [5, 4] [1, 1] : memref<8x64xf32> to !many
      %b = memref.subview %x[5, %k] [3, 4] [1, 1] : memref<8x64xf32> to !few
      %s = memref.subview %t[0, 0] [5, 4] [1, 1] : !tile to !first
      scf.forall (%i) in (1) {
        linalg.copy ins(%a : !many) outs(%s : !first)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      %u = memref.subview %t[5, 0] [3, 4] [1, 1] : !tile to !last
      scf.forall (%i) in (1) {
        linalg.copy ins(%b : !few) outs(%u : !last)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%r : memref<8x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The fifth row is filled twice: which copy is the last one must not change.
// CHECK-LABEL: func.func @overlapping(
// CHECK-NOT:       tile_graph.async_copy
func.func @overlapping(%x: memref<8x64xf32>, %r: memref<8x4xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    scf.for %k = %c0 to %c64 step %c4 {
      %t = memref.alloc() : !tile
      %a = memref.subview %x[0, %k] [5, 4] [1, 1] : memref<8x64xf32> to !many
      %b = memref.subview %x[5, %k] [3, 4] [1, 1] : memref<8x64xf32> to !few
      %s = memref.subview %t[0, 0] [5, 4] [1, 1] : !tile to !first
      scf.forall (%i) in (1) {
        linalg.copy ins(%a : !many) outs(%s : !first)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      %u = memref.subview %t[4, 0] [3, 4] [1, 1] : !tile to !shared
      scf.forall (%i) in (1) {
        linalg.copy ins(%b : !few) outs(%u : !shared)
      } {mapping = [#gpu.thread<linear_dim_0>]}
      scf.forall (%i) in (1) {
        linalg.exp ins(%t : !tile) outs(%r : memref<8x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
