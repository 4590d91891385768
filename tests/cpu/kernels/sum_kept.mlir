// Sum over the last dimension of [B, S], which stays with extent one.
#all = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d0, 0)>
func.func @kernel_0(%x: tensor<${B}x${S}xf32>, %out0: tensor<${B}x1xf32>) -> tensor<${B}x1xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i) = (0) to (${B}) step (${T}) shared_outs(%o = %out0) -> (tensor<${B}x1xf32>) {
    %sx = tensor.extract_slice %x[%i, 0] [${T}, ${S}] [1, 1] : tensor<${B}x${S}xf32> to tensor<${T}x${S}xf32>
    %so = tensor.extract_slice %o[%i, 0] [${T}, 1] [1, 1] : tensor<${B}x1xf32> to tensor<${T}x1xf32>
    %none = linalg.fill ins(%zero : f32) outs(%so : tensor<${T}x1xf32>) -> tensor<${T}x1xf32>
    %sum = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction"]} ins(%sx : tensor<${T}x${S}xf32>) outs(%none : tensor<${T}x1xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<${T}x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i, 0] [${T}, 1] [1, 1] : tensor<${T}x1xf32> into tensor<${B}x1xf32>
    }
  }
  return %r : tensor<${B}x1xf32>
}
