// RUN: magweld-opt --split-input-file --pad-shared-tiles="subgroup=32" %s | filecheck %s

!tile = memref<32x32xf32, #gpu.address_space<workgroup>>
!column = memref<1x32xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// Each thread reads a row, four words at once: eight threads walk down a column of
// 32 words. Four words behind a row keep it aligned, and its columns apart.
// CHECK-LABEL: func.func @rows(
// CHECK:           memref.alloc() {magweld.padding = 4 : i64} : memref<32x32xf32, #gpu.address_space<workgroup>>
func.func @rows(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i) in (32) {
      %s = memref.subview %t[%i, 0] [1, 32] [1, 1] : !tile to !column
      linalg.exp ins(%s : !column) outs(%s : !column)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<32x32xf32, #gpu.address_space<workgroup>>
!row = memref<32x1xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// Neighbours read neighbours: no padding takes fewer passes.
// CHECK-LABEL: func.func @columns(
// CHECK:           memref.alloc() : memref<32x32xf32, #gpu.address_space<workgroup>>
func.func @columns(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i) in (32) {
      %s = memref.subview %t[0, %i] [32, 1] [1, 1] : !tile to !row
      linalg.exp ins(%s : !row) outs(%s : !row)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<8x64xf16, #gpu.address_space<workgroup>>
!part = memref<1x8xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>

// The start of a window is a sum: 8 threads a row, 8 halves apart, which are one access.
// Eight threads read 128 bytes that lie side by side.
// CHECK-LABEL: func.func @windows(
// CHECK:           memref.alloc() : memref<8x64xf16, #gpu.address_space<workgroup>>
func.func @windows(%v: f16) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (4, 8) {
      %x = affine.apply affine_map<(d0) -> (d0 * 8)>(%j)
      %s = memref.subview %t[%i, %x] [1, 8] [1, 1] : !tile to !part
      linalg.exp ins(%s : !part) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<33x33xf32, #gpu.address_space<workgroup>>
!part = memref<1x32xf32, strided<[33, 1], offset: ?>, #gpu.address_space<workgroup>>

// 33 words apart, words of rows lie in as many banks. 34 apart, two are read at once.
// CHECK-LABEL: func.func @odd(
// CHECK:           memref.alloc() {magweld.padding = 1 : i64} : memref<33x33xf32, #gpu.address_space<workgroup>>
func.func @odd(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i) in (32) {
      %s = memref.subview %t[%i, 0] [1, 32] [1, 1] : !tile to !part
      linalg.exp ins(%s : !part) outs(%s : !part)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<32x32xf32, #gpu.address_space<workgroup>>
!pieces = memref<32x8x4xf32, #gpu.address_space<workgroup>>
!piece = memref<8x1x4xf32, strided<[128, 32, 1], offset: ?>, #gpu.address_space<workgroup>>
!column = memref<1x32xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// A tile that is written in pieces of its rows is padded for who reads it.
// CHECK-LABEL: func.func @pieces(
// CHECK:           memref.alloc() {magweld.padding = 4 : i64} : memref<32x32xf32, #gpu.address_space<workgroup>>
func.func @pieces(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    %p = memref.expand_shape %t [[0], [1, 2]] output_shape [32, 8, 4] : !tile into !pieces
    scf.forall (%i, %j) in (4, 8) {
      %s = memref.subview %p[%i, %j, 0] [8, 1, 4] [4, 8, 1] : !pieces to !piece
      linalg.fill ins(%v : f32) outs(%s : !piece)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i) in (32) {
      %s = memref.subview %t[%i, 0] [1, 32] [1, 1] : !tile to !column
      linalg.exp ins(%s : !column) outs(%s : !column)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<32x32xf32, #gpu.address_space<workgroup>>
!flat = memref<1024xf32, #gpu.address_space<workgroup>>
!column = memref<1x32xf32, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>

// A tile that is also read under another shape keeps its rows together.
// CHECK-LABEL: func.func @reshaped(
// CHECK:           memref.alloc() : memref<32x32xf32, #gpu.address_space<workgroup>>
func.func @reshaped(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i) in (32) {
      %s = memref.subview %t[%i, 0] [1, 32] [1, 1] : !tile to !column
      linalg.exp ins(%s : !column) outs(%s : !column)
    } {mapping = [#gpu.thread<linear_dim_0>]}
    %f = memref.collapse_shape %t [[0, 1]] : !tile into !flat
    scf.forall (%i) in (1) {
      linalg.exp ins(%f : !flat) outs(%f : !flat)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5)>
!a = memref<16x32xbf16, #gpu.address_space<workgroup>>
!b = memref<8x32xbf16, #gpu.address_space<workgroup>>
!sum = memref<1x2x8x1x4x2xf32, #gpu.address_space<workgroup>>
!aparts = memref<1x2x8x32xbf16, #gpu.address_space<workgroup>>
!bparts = memref<1x4x2x32xbf16, #gpu.address_space<workgroup>>
!aslice = memref<1x2x1x32xbf16, strided<[512, 256, 256, 1], offset: ?>, #gpu.address_space<workgroup>>
!bslice = memref<1x1x2x32xbf16, strided<[256, 256, 32, 1], offset: ?>, #gpu.address_space<workgroup>>
!own = memref<1x2x1x1x1x2xf32, strided<[128, 64, 64, 8, 8, 1], offset: ?>, #gpu.address_space<workgroup>>

// Lanes of mma.sync load four bytes at eight rows of 64 bytes, four of them side by side:
// rows that are 80 bytes apart are in different banks. The sums are read as they are
// written, without gaps.
// CHECK-LABEL: func.func @fragments(
// CHECK:           memref.alloc() {magweld.padding = 8 : i64} : memref<16x32xbf16, #gpu.address_space<workgroup>>
// CHECK:           memref.alloc() {magweld.padding = 8 : i64} : memref<8x32xbf16, #gpu.address_space<workgroup>>
// CHECK:           memref.alloc() : memref<1x2x8x1x4x2xf32, #gpu.address_space<workgroup>>
func.func @fragments(%arg0: memref<16x8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%arg1) in (1) {
    %alloc = memref.alloc() : !a
    %alloc_0 = memref.alloc() : !b
    %alloc_1 = memref.alloc() : !sum
    %expand_shape = memref.expand_shape %alloc [[0, 1, 2], [3]] output_shape [1, 2, 8, 32] : !a into !aparts
    %expand_shape_2 = memref.expand_shape %alloc_0 [[0, 1, 2], [3]] output_shape [1, 4, 2, 32] : !b into !bparts
    scf.forall (%arg2, %arg3) in (8, 4) {
      %subview = memref.subview %expand_shape[0, 0, %arg2, 0] [1, 2, 1, 32] [1, 1, 8, 1] : !aparts to !aslice
      %subview_3 = memref.subview %expand_shape_2[0, %arg3, 0, 0] [1, 1, 2, 32] [1, 4, 1, 1] : !bparts to !bslice
      %subview_4 = memref.subview %alloc_1[0, 0, %arg2, 0, %arg3, 0] [1, 2, 1, 1, 1, 2] [1, 1, 8, 1, 4, 1] : !sum to !own
      linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%subview, %subview_3 : !aslice, !bslice) outs(%subview_4 : !own) attrs =  {tile_graph.fragment = #tile_graph.fragment<"llvm.nvvm.mma.m16n8k16.row.col.bf16", [16, 8, 16], [2, 8], [4, 2], [1, 0], [1, 1]>} {
      ^bb0(%in: bf16, %in_5: bf16, %out: f32):
        %0 = arith.extf %in : bf16 to f32
        %1 = arith.extf %in_5 : bf16 to f32
        %2 = arith.mulf %0, %1 : f32
        %3 = arith.addf %out, %2 : f32
        linalg.yield %3 : f32
      }
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<16x8xf32, #gpu.address_space<workgroup>>
!word = memref<1x1xf32, strided<[8, 1], offset: ?>, #gpu.address_space<workgroup>>
!row = memref<1x8xf32, strided<[8, 1], offset: ?>, #gpu.address_space<workgroup>>

// Four warps work on words, which lie side by side; one on the rows, once. The words
// decide.
// CHECK-LABEL: func.func @words(
// CHECK:           memref.alloc() : memref<16x8xf32, #gpu.address_space<workgroup>>
func.func @words(%v: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (16, 8) {
      %s = memref.subview %t[%i, %j] [1, 1] [1, 1] : !tile to !word
      linalg.fill ins(%v : f32) outs(%s : !word)
      linalg.exp ins(%s : !word) outs(%s : !word)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.forall (%i) in (16) {
      %s = memref.subview %t[%i, 0] [1, 8] [1, 1] : !tile to !row
      linalg.exp ins(%s : !row) outs(%s : !row)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<16x8xf32, #gpu.address_space<workgroup>>
!word = memref<1x1xf32, strided<[8, 1], offset: ?>, #gpu.address_space<workgroup>>
!row = memref<1x8xf32, strided<[8, 1], offset: ?>, #gpu.address_space<workgroup>>

// The same tile, whose rows are worked on in each of 64 rounds: the rows decide.
// CHECK-LABEL: func.func @rows_often(
// CHECK:           memref.alloc() {magweld.padding = 4 : i64} : memref<16x8xf32, #gpu.address_space<workgroup>>
func.func @rows_often(%v: f32) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    scf.forall (%i, %j) in (16, 8) {
      %s = memref.subview %t[%i, %j] [1, 1] [1, 1] : !tile to !word
      linalg.fill ins(%v : f32) outs(%s : !word)
      linalg.exp ins(%s : !word) outs(%s : !word)
    } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
    scf.for %k = %c0 to %c64 step %c1 {
      scf.forall (%i) in (16) {
        %s = memref.subview %t[%i, 0] [1, 8] [1, 1] : !tile to !row
        linalg.exp ins(%s : !row) outs(%s : !row)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
