// Sum over the middle dimension of [B, S, C].
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d2)>
func.func @kernel_0(%x: tensor<${B}x${S}x${C}xf32>, %out0: tensor<${B}x${C}xf32>) -> tensor<${B}x${C}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i) = (0) to (${B}) step (1) shared_outs(%o = %out0) -> (tensor<${B}x${C}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0, 0] [1, ${S}, ${C}] [1, 1, 1] : tensor<${B}x${S}x${C}xf32> to tensor<1x${S}x${C}xf32>
    %so = tensor.extract_slice %o[%i, 0] [1, ${C}] [1, 1] : tensor<${B}x${C}xf32> to tensor<1x${C}xf32>
    %none = linalg.fill ins(%zero : f32) outs(%so : tensor<1x${C}xf32>) -> tensor<1x${C}xf32>
    %sum = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction", "parallel"]} ins(%sx : tensor<1x${S}x${C}xf32>) outs(%none : tensor<1x${C}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<1x${C}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i, 0] [1, ${C}] [1, 1] : tensor<1x${C}xf32> into tensor<${B}x${C}xf32>
    }
  }
  return %r : tensor<${B}x${C}xf32>
}
