// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(split-rows{threads=32 subgroup=8})" %s | filecheck %s

!rows = memref<4x32xf32, strided<[64, 1], offset: ?>>
!tile = memref<4x32xf32, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// A tile that is made and summed has pieces of four in both operations.
// CHECK-LABEL: func.func @chain(
func.func @chain(%x: memref<64x64xf32>, %b: memref<32xf32>, %v: memref<4xf32, #gpu.address_space<workgroup>>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (16) {
    %r = affine.apply affine_map<(d0) -> (d0 * 4)>(%n)
    %s = memref.subview %x[%r, 32] [4, 32] [1, 1] : memref<64x64xf32> to !rows
    // CHECK:       %[[T:.+]] = memref.alloc() : memref<4x8x4xf32, #gpu.address_space<workgroup>>
    %t = memref.alloc() : !tile
    // CHECK-DAG:   %[[S:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [4, 8, 4] : memref<4x32xf32, strided<[64, 1], offset: ?>>
    // CHECK-DAG:   %[[B:.+]] = memref.expand_shape %{{.+}} {{\[}}[0, 1]] output_shape [8, 4] : memref<32xf32>
    // CHECK:       linalg.generic
    // CHECK-SAME:    iterator_types = ["parallel", "parallel", "parallel"]
    // CHECK-SAME:    ins(%[[S]], %[[B]]
    // CHECK-SAME:    outs(%[[T]]
    // CHECK-SAME:    magweld.vector_loop = 2 : i64
    linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %b : !rows, memref<32xf32>) outs(%t : !tile) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      linalg.yield %0 : f32
    }
    // CHECK:       linalg.generic
    // CHECK-SAME:    iterator_types = ["parallel", "reduction", "reduction"]
    // CHECK-SAME:    ins(%[[T]]
    // CHECK-SAME:    magweld.vector_loop = 2 : i64
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : !tile) outs(%v : memref<4xf32, #gpu.address_space<workgroup>>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.addf %p, %u : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// Rows that begin at an even number have pieces of two, at an odd number none, and
// halves have pieces of eight where enough threads have work.
// CHECK-LABEL: func.func @widths(
func.func @widths(%x: memref<64x64xf32>, %y: memref<64x65xf32>, %h: memref<64x64xf16>, %few: memref<64xf16>, %zero: f32, %none: f16) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    // CHECK:       output_shape [64, 16, 2] : memref<64x32xf32, strided<[64, 1], offset: 2>>
    %even = memref.subview %x[0, 2] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1], offset: 2>>
    linalg.fill ins(%zero : f32) outs(%even : memref<64x32xf32, strided<[64, 1], offset: 2>>)
    // CHECK:       linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : memref<64x65xf32>)
    linalg.fill ins(%zero : f32) outs(%y : memref<64x65xf32>)
    // CHECK:       output_shape [64, 8, 8] : memref<64x64xf16>
    linalg.fill ins(%none : f16) outs(%h : memref<64x64xf16>)
    // CHECK:       output_shape [16, 4] : memref<64xf16>
    linalg.fill ins(%none : f16) outs(%few : memref<64xf16>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!tile = memref<32x32xf32, #gpu.address_space<workgroup>>

// A tile whose columns are read as well stays as it is; who reads them writes pieces.
// CHECK-LABEL: func.func @transposed(
// CHECK:         linalg.exp
// CHECK:         memref.expand_shape
// CHECK:         linalg.generic
// CHECK-SAME:      magweld.vector_loop = 2 : i64
func.func @transposed(%x: memref<32x32xf32>, %y: memref<32x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !tile
    linalg.exp ins(%x : memref<32x32xf32>) outs(%t : !tile)
    linalg.transpose ins(%t : !tile) outs(%y : memref<32x32xf32>) permutation = [1, 0]
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// A transpose writes pieces of a row; its tile is read one element at a time, and seen
// with the parts of the loop. In global memory it would stay whole.
// CHECK-LABEL: func.func @transposed_pieces(
func.func @transposed_pieces(%x: memref<32x8xf32>, %y: memref<8x32xf32>, %z: memref<8x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (16) {
    // CHECK:       %[[T:.+]] = memref.alloc() : memref<32x8xf32, #gpu.address_space<workgroup>>
    %t = memref.alloc() : memref<32x8xf32, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<32x8xf32>) outs(%t : memref<32x8xf32, #gpu.address_space<workgroup>>)
    // CHECK-DAG:   %[[S:.+]] = memref.expand_shape %[[T]] {{\[}}[0, 1], [2]] output_shape [8, 4, 8]
    // CHECK-DAG:   %[[D:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [8, 8, 4]
    // CHECK:       linalg.generic
    // CHECK-SAME:    ins(%[[S]]
    // CHECK-SAME:    outs(%[[D]]
    // CHECK-SAME:    magweld.vector_loop = 2 : i64
    linalg.transpose ins(%t : memref<32x8xf32, #gpu.address_space<workgroup>>) outs(%y : memref<8x32xf32>) permutation = [1, 0]
    // CHECK:       linalg.transpose
    linalg.transpose ins(%x : memref<32x8xf32>) outs(%z : memref<8x32xf32>) permutation = [1, 0]
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// What becomes wider or narrower on the way has pieces of the wider type; what is wide in
// a tile alone, or in one row of weights, has those of the narrow one.
// CHECK-LABEL: func.func @conversions(
func.func @conversions(%h: memref<64x64xf16>, %f: memref<64x64xf32>, %w: memref<64xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    // CHECK:       linalg.generic
    // CHECK-SAME:    ins(%{{.+}} : memref<64x16x4xf16>) outs(%{{.+}} : memref<64x16x4xf32>)
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%h : memref<64x64xf16>) outs(%f : memref<64x64xf32>) {
    ^bb0(%p: f16, %u: f32):
      %0 = arith.extf %p : f16 to f32
      linalg.yield %0 : f32
    }
    %t = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    // CHECK:       linalg.generic
    // CHECK-SAME:    ins(%{{.+}}, %{{.+}} : memref<64x8x8xf16>, memref<8x8xf32>)
    linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%h, %w : memref<64x64xf16>, memref<64xf32>) outs(%t : memref<64x64xf32, #gpu.address_space<workgroup>>) {
    ^bb0(%p: f16, %q: f32, %u: f32):
      %0 = arith.extf %p : f16 to f32
      %1 = arith.mulf %0, %q : f32
      linalg.yield %1 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!whole = memref<4x40xf32, #gpu.address_space<workgroup>>
!part = memref<4x32xf32, strided<[40, 1]>, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A part of a tile that was written otherwise is read as it lies, where what is written
// has whole pieces.
// CHECK-LABEL: func.func @part_of_a_tile(
func.func @part_of_a_tile(%out: memref<4x32xf32>, %zero: f32) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    // CHECK:       %[[T:.+]] = memref.alloc() : memref<4x40xf32, #gpu.address_space<workgroup>>
    %t = memref.alloc() : !whole
    linalg.fill ins(%zero : f32) outs(%t : !whole)
    %p = memref.subview %t[0, 0] [4, 32] [1, 1] : !whole to !part
    // CHECK-DAG:   %[[P:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [4, 8, 4] : memref<4x32xf32, strided<[40, 1]>
    // CHECK-DAG:   %[[O:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [4, 8, 4] : memref<4x32xf32>
    // CHECK:       linalg.generic
    // CHECK-SAME:    ins(%[[P]]
    // CHECK-SAME:    outs(%[[O]]
    // CHECK-SAME:    magweld.vector_loop = 2 : i64
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : !part) outs(%out : memref<4x32xf32>) {
    ^bb0(%a: f32, %u: f32):
      %0 = arith.negf %a : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
