// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies{capacity=65536 warpgroups=1},select-warpgroup-products{capacity=65536})" %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies{capacity=65536 warpgroups=1},select-warpgroup-products{capacity=65536},place-shared-memory{capacity=65536},form-gpu-launch{threads=128 subgroup=32},lower-async-copies,lower-matrix-instructions,canonicalize,cse)" %s | filecheck %s --check-prefix=CODE
// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies{capacity=65536 warpgroups=2})" %s | filecheck %s --check-prefix=PART

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// Of four slots two are on their way, one is read, and one may still be read.
// CHECK-LABEL: func.func @product(
// CHECK-COUNT-2: memref.alloc() {tile_graph.swizzled} : memref<256x64xf16
// CHECK-COUNT-2: nvvm.cp.async.commit.group
// CHECK:         scf.for
// CHECK:           nvvm.cp.async.wait.group 1
// CHECK:           tile_graph.in_flight, tile_graph.warpgroups

// The loop carries the sums; those of the iteration before are waited for.
// CODE-LABEL:  func.func @product(
// CODE:          %[[SUMS:.+]] = scf.for {{.+}} iter_args(%{{.+}} = %{{.+}})
// CODE:            nvvm.cp.async.wait.group 1
// CODE:            nvvm.wgmma.fence.aligned
// CODE-COUNT-4:    nvvm.wgmma.mma_async
// CODE:            nvvm.wgmma.commit.group.sync.aligned
// CODE-NEXT:       nvvm.wgmma.wait.group.sync.aligned 1
// CODE-NEXT:       scf.yield
// CODE:          nvvm.wgmma.wait.group.sync.aligned 0
// CODE:          llvm.extractvalue %[[SUMS]][0]

// Where some threads compute nothing, three slots are on their way.
// PART-LABEL:  func.func @product(
// PART:            nvvm.cp.async.wait.group 2
// PART-NOT:        tile_graph.in_flight
func.func @product(%l: memref<64x512xf16>, %r: memref<512x64xf16>, %out: memref<64x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 4 : i64} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    scf.for %k = %c0 to %c512 step %c64 {
      %ls = memref.alloc() : !left
      %lk = memref.subview %l[0, %k] [64, 64] [1, 1] : memref<64x512xf16> to memref<64x64xf16, strided<[512, 1], offset: ?>>
      linalg.copy ins(%lk : memref<64x64xf16, strided<[512, 1], offset: ?>>) outs(%ls : !left)
      %rs = memref.alloc() : !right
      %rk = memref.subview %r[%k, 0] [64, 64] [1, 1] : memref<512x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      linalg.copy ins(%rk : memref<64x64xf16, strided<[64, 1], offset: ?>>) outs(%rs : !right)
      linalg.matmul ins(%ls, %rs : !left, !right) outs(%sum : !sum)
    }
    linalg.copy ins(%sum : !sum) outs(%out : memref<64x64xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
