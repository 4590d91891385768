// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32},select-matrix-loads)" %s | filecheck %s
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mfma threads=256 subgroup=64},select-matrix-loads)" %s | filecheck %s --check-prefix=AMD
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32},select-matrix-loads,pad-shared-tiles,place-shared-memory,form-gpu-launch{threads=128 subgroup=32},lower-matrix-instructions)" %s | filecheck %s --check-prefix=LOADS

!left = memref<16x32xf16, #gpu.address_space<workgroup>>
!right = memref<32x32xf16, #gpu.address_space<workgroup>>
!sum = memref<16x32xf32, #gpu.address_space<workgroup>>

// The rows of both factors have halves side by side: of the left one along the
// reduction, of the right one along the columns of the result, so that its matrices are
// transposed. A subgroup has 8 columns: two matrices for each of two steps.
// CHECK-LABEL: func.func @product(
// CHECK:         tile_graph.fragment = {{.+}}, tile_graph.matrix_loads = array<i64: 0, 1>
// AMD-LABEL:   func.func @product(
// AMD:           tile_graph.fragment
// AMD-NOT:       tile_graph.matrix_loads
// LOADS-LABEL: func.func @product(
// LOADS:         memref.view {{.+}} to memref<16x40xf16
// LOADS:         memref.view {{.+}} to memref<32x40xf16
// LOADS:         nvgpu.ldmatrix {{.+}} {numTiles = 4 : i32, transpose = false} : memref<1x2x8x32xf16, {{.+}} -> vector<4x2xf16>
// LOADS:         nvgpu.ldmatrix {{.+}} {numTiles = 2 : i32, transpose = true} : memref<32x4x4x2xf16, {{.+}} -> vector<2x2xf16>
// LOADS:         "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// LOADS:         nvgpu.ldmatrix
// LOADS:         nvgpu.ldmatrix
// LOADS:         "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// LOADS-NOT:     nvgpu.ldmatrix
// LOADS:         return
func.func @product(%l: memref<16x32xf16>, %r: memref<32x32xf16>, %out: memref<16x32xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %ls = memref.alloc() : !left
    linalg.copy ins(%l : memref<16x32xf16>) outs(%ls : !left)
    %rs = memref.alloc() : !right
    linalg.copy ins(%r : memref<32x32xf16>) outs(%rs : !right)
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    linalg.matmul ins(%ls, %rs : !left, !right) outs(%sum : !sum)
    linalg.copy ins(%sum : !sum) outs(%out : memref<16x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!whole = memref<16x40xf16, #gpu.address_space<workgroup>>
!left = memref<16x32xf16, strided<[40, 1], offset: 4>, #gpu.address_space<workgroup>>
!wide = memref<32x36xf16, #gpu.address_space<workgroup>>
!right = memref<32x32xf16, strided<[36, 1]>, #gpu.address_space<workgroup>>
!sum = memref<16x32xf32, #gpu.address_space<workgroup>>

// Rows that begin at 8 bytes, and rows that are 72 bytes apart, are loaded by each lane.
// CHECK-LABEL: func.func @unaligned(
// CHECK:         tile_graph.fragment
// CHECK-NOT:     tile_graph.matrix_loads
func.func @unaligned(%out: memref<16x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %lw = memref.alloc() : !whole
    %l = memref.subview %lw[0, 4] [16, 32] [1, 1] : !whole to !left
    %rw = memref.alloc() : !wide
    %r = memref.subview %rw[0, 0] [32, 32] [1, 1] : !wide to !right
    %sum = memref.alloc() : !sum
    linalg.matmul ins(%l, %r : !left, !right) outs(%sum : !sum)
    linalg.copy ins(%sum : !sum) outs(%out : memref<16x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!ring = memref<32x32xf16, #gpu.address_space<workgroup>>
!left = memref<16x32xf16, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>
!right = memref<32x32xf16, #gpu.address_space<workgroup>>
!sum = memref<16x32xf32, #gpu.address_space<workgroup>>

// A slot of a ring begins at a row, whichever it is.
// CHECK-LABEL: func.func @ring(
// CHECK:         tile_graph.matrix_loads = array<i64: 0, 1>
func.func @ring(%out: memref<16x32xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (1) {
    %lr = memref.alloc() : !ring
    %r = memref.alloc() : !right
    %sum = memref.alloc() : !sum
    scf.for %k = %c0 to %c64 step %c16 {
      %row = affine.apply affine_map<(d0) -> (d0 mod 32)>(%k)
      %l = memref.subview %lr[%row, 0] [16, 32] [1, 1] : !ring to !left
      linalg.matmul ins(%l, %r : !left, !right) outs(%sum : !sum)
    }
    linalg.copy ins(%sum : !sum) outs(%out : memref<16x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
