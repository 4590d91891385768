// RUN: magweld-opt --split-input-file --lower-async-copies %s | filecheck %s

!tile = memref<2x8xf16, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// One for each row, of 16 bytes.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         nvgpu.device_async_copy %{{.*}}, %{{.*}}, 8 {bypassL1} : memref<2x8xf16> to memref<2x8xf16, #gpu.address_space<workgroup>>
// CHECK:         arith.constant 1 : index
// CHECK:         nvgpu.device_async_copy %{{.*}}, %{{.*}}, 8 {bypassL1}
// CHECK-NOT:     linalg.generic
func.func @rows(%x: memref<2x8xf16>) attributes {tile_graph.kernel} {
  %t = memref.alloc() : !tile
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x8xf16>) outs(%t : !tile)
      attrs = {magweld.vector_loop = 1 : i64, tile_graph.async_copy} {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

!whole = memref<2x10xf16, #gpu.address_space<workgroup>>
!tile = memref<2x8xf16, strided<[10, 1]>, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Rows that lie a word further apart are aligned to 4 bytes: four for each row.
// CHECK-LABEL: func.func @padded(
// CHECK-COUNT-8: nvgpu.device_async_copy %{{.*}}, %{{.*}}, 2 : memref<2x8xf16>
// CHECK-NOT:     nvgpu.device_async_copy
func.func @padded(%x: memref<2x8xf16>) attributes {tile_graph.kernel} {
  %w = memref.alloc() : !whole
  %t = memref.subview %w[0, 0] [2, 8] [1, 1] : !whole to !tile
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x8xf16>) outs(%t : !tile)
      attrs = {magweld.vector_loop = 1 : i64, tile_graph.async_copy} {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

!whole = memref<2x9xf16, #gpu.address_space<workgroup>>
!tile = memref<2x8xf16, strided<[9, 1]>, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Rows that begin between words are copied by the thread, and so is what is not marked.
// CHECK-LABEL: func.func @between_words(
// CHECK-NOT:     nvgpu
// CHECK:         linalg.generic
// CHECK-NOT:     tile_graph.async_copy
// CHECK:         linalg.copy
func.func @between_words(%x: memref<2x8xf16>) attributes {tile_graph.kernel} {
  %w = memref.alloc() : !whole
  %t = memref.subview %w[0, 0] [2, 8] [1, 1] : !whole to !tile
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x8xf16>) outs(%t : !tile)
      attrs = {magweld.vector_loop = 1 : i64, tile_graph.async_copy} {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.copy ins(%x : memref<2x8xf16>) outs(%t : !tile)
  return
}
