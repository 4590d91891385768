// RUN: not magweld-opt --lower-matrix-instructions %s 2>&1 | filecheck %s

#left = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d6)>
#right = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>
#sum = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5)>
!a = memref<1x2x8x32xbf16, #gpu.address_space<workgroup>>
!b = memref<1x4x2x36xbf16, #gpu.address_space<workgroup>>
!a_own = memref<1x2x1x32xbf16, strided<[512, 256, 256, 1], offset: ?>, #gpu.address_space<workgroup>>
!b_own = memref<1x1x2x32xbf16, strided<[288, 288, 36, 1], offset: ?>, #gpu.address_space<workgroup>>

// Matrices have rows of 16 bytes at multiples of that: a row of 72 bytes has none.
// CHECK: expected rows of 16 bytes at multiples of 16 in what is loaded as matrices, got memref<1x4x2x36xbf16, #gpu.address_space<workgroup>>
func.func @product(%g: index, %t: index) attributes {tile_graph.kernel} {
  %a = memref.alloc() : !a
  %b = memref.alloc() : !b
  %own = memref.alloca() : memref<1x2x1x1x1x2xf32>
  %l = memref.subview %a[0, 0, %g, 0] [1, 2, 1, 32] [1, 1, 8, 1] : !a to !a_own
  %r = memref.subview %b[0, %t, 0, 0] [1, 1, 2, 32] [1, 4, 1, 1] : !b to !b_own
  linalg.generic {indexing_maps = [#left, #right, #sum], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%l, %r : !a_own, !b_own) outs(%own : memref<1x2x1x1x1x2xf32>)
      attrs = {tile_graph.fragment = #tile_graph.fragment<"llvm.nvvm.mma.m16n8k16.row.col.bf16", [16, 8, 16], [2, 8], [4, 2], [1, 0], [1, 1]>,
               tile_graph.matrix_loads = array<i64: 0, 1>} {
  ^bb0(%x: bf16, %y: bf16, %s: f32):
    %x32 = arith.extf %x : bf16 to f32
    %y32 = arith.extf %y : bf16 to f32
    %p = arith.mulf %x32, %y32 : f32
    %n = arith.addf %s, %p : f32
    linalg.yield %n : f32
  }
  return
}
