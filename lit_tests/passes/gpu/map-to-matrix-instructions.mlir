// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mfma threads=256 subgroup=64})" %s | filecheck %s
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32})" %s | filecheck %s --check-prefix=MMA
// RUN: magweld-opt --split-input-file --map-to-matrix-instructions %s | filecheck %s --check-prefix=NONE

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
!left = memref<32x16xf16, #gpu.address_space<workgroup>>
!right = memref<64x16xf16, #gpu.address_space<workgroup>>
!sum = memref<32x64xf32, #gpu.address_space<workgroup>>

// Four subgroups along the columns. The accumulator and what
// works on it element by element are split into 2 x 4 x 4 rows and 4 x 16 columns.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[SUM:.+]] = memref.alloc() : memref<2x4x4x4x16xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (4, 4, 16)
// CHECK:           linalg.generic {{.+}} outs(%{{.+}} : memref<2x1x4x1x1xf32
// CHECK:         memref.expand_shape %{{.+}} {{.+}} output_shape [2, 4, 4, 16]
// CHECK:         memref.expand_shape %{{.+}} {{.+}} output_shape [4, 16, 16]
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (4, 4, 16)
// CHECK:           linalg.generic {{.+}}tile_graph.fragment = #tile_graph.fragment<"llvm.amdgcn.mfma.f32.16x16x16f16", [16, 16, 16], [4, 4], [16], [0, 0], [1, 4]>
// CHECK:         memref.expand_shape %{{.+}} output_shape [2, 4, 4, 4, 16]
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (4, 4, 16)
// CHECK:           arith.truncf

// MMA-LABEL: func.func @product(
// MMA:           memref.alloc() : memref<2x2x8x8x4x2xf32, #gpu.address_space<workgroup>>
// MMA:           scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (4, 8, 4)
// MMA:           tile_graph.fragment = #tile_graph.fragment<"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", [16, 8, 16], [2, 8], [4, 2], [1, 0], [1, 4]>

// NONE-NOT: tile_graph.fragment
func.func @product(%l: !left, %r: !right, %out: memref<32x64xf16>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%l, %r : !left, !right) outs(%sum : !sum) {
    ^bb0(%a: f16, %b: f16, %s: f32):
      %a32 = arith.extf %a : f16 to f32
      %b32 = arith.extf %b : f16 to f32
      %p = arith.mulf %a32, %b32 : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%sum : !sum) outs(%out : memref<32x64xf16>) {
    ^bb0(%x: f32, %old: f16):
      %h = arith.truncf %x : f32 to f16
      linalg.yield %h : f16
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!left = memref<16x16xf16, #gpu.address_space<workgroup>>
!right = memref<16x16xf16, #gpu.address_space<workgroup>>
!sum = memref<16x16xf32, #gpu.address_space<workgroup>>
!row = memref<16xf32, #gpu.address_space<workgroup>>

// What reduces the result sees it as it was.
// CHECK-LABEL: func.func @reduced(
// CHECK:         %[[SUM:.+]] = memref.alloc() : memref<16x16xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[PARTS:.+]] = memref.expand_shape %[[SUM]] {{.+}} output_shape [1, 4, 4, 1, 16]
// CHECK:         memref.subview %[[PARTS]]
// CHECK:         linalg.reduce {{.*}}ins(%[[SUM]]
func.func @reduced(%l: !left, %r: !right, %row: !row) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    linalg.matmul ins(%l, %r : !left, !right) outs(%sum : !sum)
    linalg.reduce { arith.addf } ins(%sum : !sum) outs(%row : !row) dimensions = [1]
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!left = memref<12x16xf16, #gpu.address_space<workgroup>>
!right = memref<16x16xf16, #gpu.address_space<workgroup>>
!sum = memref<12x16xf32, #gpu.address_space<workgroup>>

// Rows that are no multiple of an instruction's are left to the threads.
// CHECK-LABEL: func.func @other_sizes(
// CHECK:         linalg.matmul
func.func @other_sizes(%l: !left, %r: !right) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.matmul ins(%l, %r : !left, !right) outs(%sum : !sum)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#left = affine_map<(m, u, n, k) -> (m, k)>
#right = affine_map<(m, u, n, k) -> (k, n)>
#sum = affine_map<(m, u, n, k) -> (m, u, n)>
!left = memref<16x16xf16, #gpu.address_space<workgroup>>
!right = memref<16x16xf16, #gpu.address_space<workgroup>>
!sum = memref<16x1x16xf32, #gpu.address_space<workgroup>>

// Rows and columns are the last dimensions of a result, or threads compute it.
// CHECK-LABEL: func.func @rows_apart(
// CHECK-NOT:     tile_graph.fragment
func.func @rows_apart(%l: !left, %r: !right) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.generic {indexing_maps = [#left, #right, #sum], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%l, %r : !left, !right) outs(%sum : !sum) {
    ^bb0(%a: f16, %b: f16, %s: f32):
      %a32 = arith.extf %a : f16 to f32
      %b32 = arith.extf %b : f16 to f32
      %p = arith.mulf %a32, %b32 : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
!tile = memref<16x16xf16, #gpu.address_space<workgroup>>
!sum = memref<16x16xf32, #gpu.address_space<workgroup>>

// A product in f16 that is widened then is rounded once more than an instruction does.
// CHECK-LABEL: func.func @rounded_products(
// CHECK-NOT:     tile_graph.fragment
func.func @rounded_products(%l: !tile, %r: !tile) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%l, %r : !tile, !tile) outs(%sum : !sum) {
    ^bb0(%a: f16, %b: f16, %s: f32):
      %p = arith.mulf %a, %b : f16
      %w = arith.extf %p : f16 to f32
      %t = arith.addf %s, %w : f32
      linalg.yield %t : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
!left = memref<32x16xf16, #gpu.address_space<workgroup>>
!right = memref<64x16xf16, #gpu.address_space<workgroup>>
!sum = memref<32x64xf32, #gpu.address_space<workgroup>>

// The copy that bufferization has left is shared as the accumulator is, so that nothing
// else sees the accumulator.
// CHECK-LABEL: func.func @stored(
// CHECK:         memref.alloc() : memref<2x4x4x4x16xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:     memref.collapse_shape
// CHECK:         tile_graph.fragment
// CHECK-NOT:     memref.copy
// CHECK:         memref.expand_shape %arg2 {{.+}} output_shape [2, 4, 4, 4, 16]
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (4, 4, 16)
func.func @stored(%l: !left, %r: !right, %out: memref<32x64xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%l, %r : !left, !right) outs(%sum : !sum) {
    ^bb0(%a: f16, %b: f16, %s: f32):
      %a32 = arith.extf %a : f16 to f32
      %b32 = arith.extf %b : f16 to f32
      %p = arith.mulf %a32, %b32 : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
    }
    memref.copy %sum, %out : !sum to memref<32x64xf32>
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
