// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies,select-warpgroup-products,select-matrix-loads)" %s | filecheck %s
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies,select-warpgroup-products,select-matrix-loads)" %s | filecheck %s --check-prefix=MMA
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies,select-warpgroup-products,pad-shared-tiles,place-shared-memory,form-gpu-launch{threads=128 subgroup=32},lower-async-copies,lower-matrix-instructions,canonicalize,cse)" %s | filecheck %s --check-prefix=CODE

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// Four subgroups share the rows. The rings and the copies to them are swizzled, and
// threads fence what they have copied before they meet.
// CHECK-LABEL: func.func @product(
// CHECK:         memref.alloc() {tile_graph.swizzled} : memref<128x64xf16
// CHECK:         memref.alloc() {tile_graph.swizzled} : memref<128x64xf16
// CHECK:         tile_graph.async_copy, tile_graph.swizzled
// CHECK:         scf.for
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-NEXT:      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:      gpu.barrier
// CHECK:           tile_graph.fragment = #tile_graph.fragment<"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", [16, 8, 16], [2, 8], [4, 2], [1, 0], [4, 1]>, tile_graph.warpgroups}
// CHECK-NOT:       tile_graph.matrix_loads

// Without warpgroups subgroups share it otherwise, and load the factors themselves.
// MMA-LABEL:   func.func @product(
// MMA-NOT:       tile_graph.swizzled
// MMA-NOT:       nvvm.fence.proxy
// MMA:           tile_graph.matrix_loads
// MMA-NOT:       tile_graph.warpgroups

// No row is padded. Chunk `c` of row `r` of a slot goes where chunk `c xor r` would lie.
// Descriptors: 1024 bytes from eight rows to the next, a swizzle of 128 bytes; 32 bytes
// further for 16 halves of a row, 2048 for 16 rows. The right factor has steps as rows.
// CODE-LABEL:  func.func @product(
// CODE-SAME:     magweld.shared_bytes = 32768 : i64
// CODE:          memref.view {{.+}} to memref<8192xf16
// CODE:          arith.remui
// CODE:          arith.xori
// CODE:          nvgpu.device_async_copy {{.+}}, 8 {bypassL1} : {{.+}} to memref<8192xf16
// CODE:          scf.for
// CODE:            nvvm.cp.async.wait.group 0
// CODE-NEXT:       nvvm.fence.proxy
// CODE-NEXT:       gpu.barrier
// CODE:            memref.extract_aligned_pointer_as_index
// CODE:            nvvm.wgmma.fence.aligned
// CODE-COUNT-4:    nvvm.wgmma.mma_async {{.+}} <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>]
// CODE-NOT:        nvvm.wgmma.mma_async
// CODE:            nvvm.wgmma.commit.group.sync.aligned
// CODE-NEXT:       nvvm.wgmma.wait.group.sync.aligned 0
func.func @product(%l: memref<64x256xf16>, %r: memref<256x64xf16>, %out: memref<64x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    scf.for %k = %c0 to %c256 step %c64 {
      %ls = memref.alloc() : !left
      %lk = memref.subview %l[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      linalg.copy ins(%lk : memref<64x64xf16, strided<[256, 1], offset: ?>>) outs(%ls : !left)
      %rs = memref.alloc() : !right
      %rk = memref.subview %r[%k, 0] [64, 64] [1, 1] : memref<256x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      linalg.copy ins(%rk : memref<64x64xf16, strided<[64, 1], offset: ?>>) outs(%rs : !right)
      linalg.matmul ins(%ls, %rs : !left, !right) outs(%sum : !sum)
    }
    linalg.copy ins(%sum : !sum) outs(%out : memref<64x64xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!left = memref<64x32xf16, #gpu.address_space<workgroup>>
!right = memref<32x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// Rows of 64 bytes are loaded as matrices.
// CHECK-LABEL: func.func @short(
// CHECK-NOT:     tile_graph.swizzled
// CHECK:         tile_graph.matrix_loads
// CHECK-NOT:     tile_graph.warpgroups
func.func @short(%l: memref<64x256xf16>, %r: memref<256x64xf16>, %out: memref<64x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    scf.for %k = %c0 to %c256 step %c32 {
      %ls = memref.alloc() : !left
      %lk = memref.subview %l[0, %k] [64, 32] [1, 1] : memref<64x256xf16> to memref<64x32xf16, strided<[256, 1], offset: ?>>
      linalg.copy ins(%lk : memref<64x32xf16, strided<[256, 1], offset: ?>>) outs(%ls : !left)
      %rs = memref.alloc() : !right
      %rk = memref.subview %r[%k, 0] [32, 64] [1, 1] : memref<256x64xf16> to memref<32x64xf16, strided<[64, 1], offset: ?>>
      linalg.copy ins(%rk : memref<32x64xf16, strided<[64, 1], offset: ?>>) outs(%rs : !right)
      linalg.matmul ins(%ls, %rs : !left, !right) outs(%sum : !sum)
    }
    linalg.copy ins(%sum : !sum) outs(%out : memref<64x64xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
