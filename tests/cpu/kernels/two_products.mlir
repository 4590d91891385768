// a b c^T, rows of a in tiles.
#m = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @kernel_0(%a: tensor<${M}x${K}xf32>, %b: tensor<${K}x${L}xf32>, %c: tensor<${N}x${L}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i) = (0) to (${M}) step (${TM}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sa = tensor.extract_slice %a[%i, 0] [${TM}, ${K}] [1, 1] : tensor<${M}x${K}xf32> to tensor<${TM}x${K}xf32>
    %e = tensor.empty() : tensor<${TM}x${L}xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<${TM}x${L}xf32>) -> tensor<${TM}x${L}xf32>
    %p = linalg.matmul ins(%sa, %b : tensor<${TM}x${K}xf32>, tensor<${K}x${L}xf32>) outs(%f : tensor<${TM}x${L}xf32>) -> tensor<${TM}x${L}xf32>
    %so = tensor.extract_slice %o[%i, 0] [${TM}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${TM}x${N}xf32>
    %g = linalg.fill ins(%zero : f32) outs(%so : tensor<${TM}x${N}xf32>) -> tensor<${TM}x${N}xf32>
    %y = linalg.matmul indexing_maps = [#m, #n, #mn] ins(%p, %c : tensor<${TM}x${L}xf32>, tensor<${N}x${L}xf32>) outs(%g : tensor<${TM}x${N}xf32>) -> tensor<${TM}x${N}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [${TM}, ${N}] [1, 1] : tensor<${TM}x${N}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
