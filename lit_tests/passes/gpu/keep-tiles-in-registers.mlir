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

// -----

!rows = memref<4xf32, #gpu.address_space<workgroup>>
!row = memref<1xf32, strided<[4], offset: ?>, #gpu.address_space<workgroup>>
!own = memref<1xf32, #gpu.address_space<private>>
#own = affine_map<(d0) -> (d0)>

// All eight lanes of a row know what they combine: each keeps a copy.
// CHECK-LABEL: func.func @combined(
// CHECK:           %[[SUM:.+]] = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
// CHECK-NOT:       memref.alloc()
// CHECK:           linalg.generic {{.+}} outs(%[[SUM]] : {{.+}}tile_graph.subgroup_reduction = 8
// CHECK:           linalg.exp ins(%[[SUM]] :
func.func @combined(%own: !own, %out: !own) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !rows
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i] [1] [4] : !rows to !row
      linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : !own) outs(%s : !row) attrs = {tile_graph.subgroup_reduction = 8 : i64} {
      ^bb0(%x: f32, %sum: f32):
        linalg.yield %x : f32
      }
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i] [1] [4] : !rows to !row
      linalg.exp ins(%s : !row) outs(%out : !own)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!rows = memref<4xf32, #gpu.address_space<workgroup>>
!row = memref<1xf32, strided<[4], offset: ?>, #gpu.address_space<workgroup>>
!own = memref<1xf32, #gpu.address_space<private>>
#own = affine_map<(d0) -> (d0)>

// Eight lanes of which two groups of four combine know half of a row each; and four
// threads that have a row each have other numbers than its lanes.
// CHECK-LABEL: func.func @not_all_lanes(
// CHECK:           memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
// CHECK-LABEL: func.func @other_threads(
// CHECK:           memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
func.func @not_all_lanes(%own: !own, %out: !own) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !rows
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i] [1] [4] : !rows to !row
      linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : !own) outs(%s : !row) attrs = {tile_graph.subgroup_reduction = 4 : i64} {
      ^bb0(%x: f32, %sum: f32):
        linalg.yield %x : f32
      }
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
func.func @other_threads(%own: !own, %out: !own) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !rows
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %t[%i] [1] [4] : !rows to !row
      linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : !own) outs(%s : !row) attrs = {tile_graph.subgroup_reduction = 8 : i64} {
      ^bb0(%x: f32, %sum: f32):
        linalg.yield %x : f32
      }
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i) in (4) {
      %s = memref.subview %t[%i] [1] [4] : !rows to !row
      linalg.exp ins(%s : !row) outs(%out : !own)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!part = memref<2x2xf32, strided<[32, 4], offset: ?>, #gpu.address_space<workgroup>>
!other = memref<1x4xf32, strided<[64, 2], offset: ?>, #gpu.address_space<workgroup>>

// Sums that others read in another way are made in registers, and written once, behind
// the loop over the steps.
// CHECK-LABEL: func.func @sums_for_others(
// CHECK-NEXT:    scf.forall
// CHECK-NEXT:      %[[REG:.+]] = memref.alloca() : memref<2x2xf32, #gpu.address_space<private>>
// CHECK-NEXT:      %[[TILE:.+]] = memref.alloc()
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[REG]] :
// CHECK:           scf.for
// CHECK-NOT:         memref.subview
// CHECK:             linalg.matmul ins({{.+}}) outs(%[[REG]] :
// CHECK:           scf.forall (%[[I:.+]], %[[J:.+]]) in (4, 4) {
// CHECK-NEXT:        %[[PART:.+]] = memref.subview %[[TILE]][%[[I]], %[[J]]] [2, 2] [4, 4]
// CHECK-NEXT:        linalg.copy {{.*}}ins(%[[REG]] : {{.+}}) outs(%[[PART]] :
// CHECK:           scf.forall {{.+}} in (8, 2) {
// CHECK-NEXT:        memref.subview %[[TILE]]
func.func @sums_for_others(%v: f32, %a: index, %b: index, %c: index, %l: memref<2x4xf32>, %r: memref<4x2xf32>, %d: memref<1x4xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 4) {
      %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
      linalg.fill ins(%v : f32) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.for %k = %a to %b step %c {
      scf.forall (%i, %j) in (4, 4) {
        %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
        linalg.matmul ins(%l, %r : memref<2x4xf32>, memref<4x2xf32>) outs(%s : !part)
      } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    }
    scf.forall (%i, %j) in (8, 2) {
      %s = memref.subview %t[%i, %j] [1, 4] [8, 2] : !tile to !other
      linalg.exp ins(%s : !other) outs(%d : memref<1x4xf32>)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!part = memref<2x2xf32, strided<[32, 4], offset: ?>, #gpu.address_space<workgroup>>
!other = memref<1x4xf32, strided<[64, 2], offset: ?>, #gpu.address_space<workgroup>>

// Others read the sums of each step: they stay in memory that threads share.
// CHECK-LABEL: func.func @sums_read_in_steps(
// CHECK:           memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
func.func @sums_read_in_steps(%a: index, %b: index, %c: index, %l: memref<2x4xf32>, %r: memref<4x2xf32>, %d: memref<1x4xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.for %k = %a to %b step %c {
      scf.forall (%i, %j) in (4, 4) {
        %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
        linalg.matmul ins(%l, %r : memref<2x4xf32>, memref<4x2xf32>) outs(%s : !part)
      } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
      scf.forall (%i, %j) in (8, 2) {
        %s = memref.subview %t[%i, %j] [1, 4] [8, 2] : !tile to !other
        linalg.exp ins(%s : !other) outs(%d : memref<1x4xf32>)
      } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x8xf32, #gpu.address_space<workgroup>>
!part = memref<2x2xf32, strided<[32, 4], offset: ?>, #gpu.address_space<workgroup>>
!other = memref<1x4xf32, strided<[64, 2], offset: ?>, #gpu.address_space<workgroup>>

// Another loop writes over the sums in another way.
// CHECK-LABEL: func.func @sums_written_by_others(
// CHECK:           memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloca
func.func @sums_written_by_others(%l: memref<2x4xf32>, %r: memref<4x2xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 4) {
      %s = memref.subview %t[%i, %j] [2, 2] [4, 4] : !tile to !part
      linalg.matmul ins(%l, %r : memref<2x4xf32>, memref<4x2xf32>) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i, %j) in (8, 2) {
      %s = memref.subview %t[%i, %j] [1, 4] [8, 2] : !tile to !other
      linalg.exp ins(%s : !other) outs(%s : !other)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
