// RUN: magweld-opt --lower-bulk-copies %s | filecheck %s

!ring = memref<512x128xbf16, #gpu.address_space<workgroup>>
!slot = memref<256x128xbf16, strided<[128, 1], offset: ?>, #gpu.address_space<workgroup>>
!part = memref<256x128xbf16, strided<[768, 1], offset: ?>>

// Two boxes of 256 rows of 128 bytes. Blocks of 64 columns of a ring lie behind each
// other, each has the rows of all slots: 65536 bytes further.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[MAP:[a-z0-9]+]]: !llvm.ptr)
// CHECK:         nvvm.mbarrier.arrive.expect_tx %[[BARRIER:[a-z0-9]+]],
// CHECK:         memref.extract_aligned_pointer_as_index
// CHECK:         %[[FIRST:.+]] = affine.apply #{{.+}}(%[[SLOT:.+]])
// CHECK:         llvm.inttoptr %{{.+}} : i64 to !llvm.ptr<7>
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, %[[MAP]], %[[BARRIER]], box[%{{.+}}, %{{.+}}]
// CHECK:         %[[FURTHER:.+]] = arith.constant 65536 : index
// CHECK:         arith.addi %{{.+}}, %[[FURTHER]]
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, %[[MAP]], %[[BARRIER]], box[%{{.+}}, %{{.+}}]
// CHECK-NOT:     nvvm.cp.async.bulk
// CHECK-NOT:     linalg.copy
func.func @copy(%x: memref<1024x768xbf16>, %row: index, %k: index, %n: index, %barrier: !llvm.ptr<3>, %map: !llvm.ptr)
    attributes {tile_graph.kernel, magweld.tensor_maps = [{argument = 0 : i64, box = array<i64: 256, 64>, swizzle = 128 : i64}]} {
  %c0 = arith.constant 0 : index
  %bytes = arith.constant 65536 : i32
  %whole = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %ring = memref.view %whole[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !ring
  %first = affine.apply affine_map<(d0) -> (d0 * 256)>(%n)
  %slot = memref.subview %ring[%first, 0] [256, 128] [1, 1] : !ring to !slot
  %part = memref.subview %x[%row, %k] [256, 128] [1, 1] : memref<1024x768xbf16> to !part
  nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
  linalg.copy {tile_graph.bulk_copy, tile_graph.swizzled} ins(%part : !part) outs(%slot : !slot)
  return
}
