// RUN: not magweld-opt --lower-async-copies %s 2>&1 | filecheck %s

!tile = memref<8x64xf16, #gpu.address_space<workgroup>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Chunks are permuted in slots of a ring.
// CHECK: expected a slot of a swizzled ring, got memref<8x64xf16, #gpu.address_space<workgroup>>
func.func @whole(%x: memref<8x64xf16>) attributes {tile_graph.kernel} {
  %t = memref.alloc() : !tile
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x64xf16>) outs(%t : !tile)
      attrs = {magweld.vector_loop = 1 : i64, tile_graph.async_copy, tile_graph.swizzled} {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  return
}
