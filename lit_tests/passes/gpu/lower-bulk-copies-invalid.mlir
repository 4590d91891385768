// RUN: magweld-opt --split-input-file --verify-diagnostics --lower-bulk-copies %s

!ring = memref<128x64xbf16, #gpu.address_space<workgroup>>

func.func @no_map(%x: memref<128x64xbf16>, %barrier: !llvm.ptr<3>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %bytes = arith.constant 16384 : i32
  %whole = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %ring = memref.view %whole[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !ring
  %slot = memref.subview %ring[0, 0] [128, 64] [1, 1] : !ring to memref<128x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>
  nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
  // expected-error@+1 {{expected a tensor map of the matrix}}
  linalg.copy {tile_graph.bulk_copy} ins(%x : memref<128x64xbf16>) outs(%slot : memref<128x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>)
  return
}

// -----

!ring = memref<128x64xbf16, #gpu.address_space<workgroup>>

func.func @no_barrier(%x: memref<128x64xbf16>, %map: !llvm.ptr)
    attributes {tile_graph.kernel, magweld.tensor_maps = [{argument = 0 : i64, box = array<i64: 128, 64>, swizzle = 128 : i64}]} {
  %c0 = arith.constant 0 : index
  %whole = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %ring = memref.view %whole[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !ring
  %slot = memref.subview %ring[0, 0] [128, 64] [1, 1] : !ring to memref<128x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>
  // expected-error@+1 {{expected an mbarrier that expects its bytes}}
  linalg.copy {tile_graph.bulk_copy} ins(%x : memref<128x64xbf16>) outs(%slot : memref<128x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>)
  return
}

// -----

func.func @no_ring(%x: memref<128x64xbf16>, %y: memref<128x64xbf16>) attributes {tile_graph.kernel} {
  // expected-error@+1 {{expected a slice of a matrix and the slot of a swizzled ring}}
  linalg.copy {tile_graph.bulk_copy} ins(%x : memref<128x64xbf16>) outs(%y : memref<128x64xbf16>)
  return
}
