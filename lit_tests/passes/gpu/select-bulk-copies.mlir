// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies,select-warpgroup-products,select-bulk-copies,canonicalize,cse)" %s | filecheck %s
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers,pipeline-staged-copies{capacity=33791},select-warpgroup-products{capacity=33791},select-bulk-copies{capacity=33791})" %s | filecheck %s --check-prefix=FULL

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// One thread makes an mbarrier for each slot, and all fence these and what they have had
// in shared memory. It expects the bytes of both tiles of a step, and begins to copy
// them. In a step all threads wait for the phase of its slot, and no thread fences.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[L:[a-z0-9]+]]: memref<64x256xf16>, %[[R:[a-z0-9]+]]: memref<256x64xf16>, %{{.+}}: memref<64x64xf32>, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr)
// CHECK-SAME:    magweld.tensor_maps = [{argument = 0 : i64, box = array<i64: 64, 64>, swizzle = 128 : i64}, {argument = 1 : i64, box = array<i64: 64, 64>, swizzle = 128 : i64}]
// CHECK:         %[[BARRIERS:.+]] = memref.alloc() : memref<2xi64, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.+}}) in (1)
// CHECK-COUNT-2:   nvvm.mbarrier.init
// CHECK-NOT:       nvvm.mbarrier.init
// CHECK:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.forall (%{{.+}}) in (1)
// CHECK:           memref.extract_aligned_pointer_as_index %[[BARRIERS]]
// CHECK:           nvvm.mbarrier.arrive.expect_tx %{{.+}}, %c16384_i32
// CHECK:           linalg.copy {{.*}}tile_graph.bulk_copy, tile_graph.swizzled} ins(%{{.+}} : memref<64x64xf16, strided<[256, 1]>>)
// CHECK:           linalg.copy {{.*}}tile_graph.bulk_copy, tile_graph.swizzled} ins(%{{.+}} : memref<64x64xf16, strided<[64, 1]>>)
// CHECK:         scf.for %[[K:.+]] =
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.if
// CHECK:             nvvm.mbarrier.arrive.expect_tx %{{.+}}, %c16384_i32
// CHECK-COUNT-2:     tile_graph.bulk_copy
// CHECK-NOT:       tile_graph.async_copy
// CHECK:           tile_graph.warpgroups}
// CHECK-COUNT-2: nvvm.mbarrier.inval
// CHECK:         gpu.barrier
// CHECK-NOT:     nvvm.cp.async

// Without room for the mbarriers threads copy, as without warpgroups.
// FULL-LABEL:  func.func @product(
// FULL-NOT:      tile_graph.bulk_copy
// FULL:          tile_graph.async_copy, tile_graph.swizzled
// FULL-NOT:      nvvm.mbarrier
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

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// The kernel of a batch takes a table of pointers, in which no map has room.
// CHECK-LABEL: func.func @batch(
// CHECK-NOT:     magweld.tensor_maps
// CHECK:         tile_graph.async_copy
// CHECK-NOT:     tile_graph.bulk_copy
func.func @batch(%l: memref<64x256xf16>, %r: memref<256x64xf16>, %out: memref<64x64xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 2 : i64, magweld.members = 2 : i64} {
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

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x64xf16, #gpu.address_space<workgroup>>
!sum = memref<64x64xf32, #gpu.address_space<workgroup>>

// A slice of a batch of matrices is no slice of a matrix.
// CHECK-LABEL: func.func @of_batch(
// CHECK-NOT:     magweld.tensor_maps
// CHECK:         tile_graph.async_copy
// CHECK-NOT:     tile_graph.bulk_copy
func.func @of_batch(%l: memref<2x64x256xf16>, %r: memref<256x64xf16>, %out: memref<64x64xf32>)
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
      %lk = memref.subview %l[1, 0, %k] [1, 64, 64] [1, 1, 1] : memref<2x64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
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
