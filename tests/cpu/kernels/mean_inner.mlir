// Mean over the last two dimensions of [C, H, H].
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0)>
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<${C}x${H}x${H}xf32>, %out0: tensor<${C}xf32>) -> tensor<${C}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %count = arith.constant ${COUNT}.0 : f32
  %r = scf.forall (%i) = (0) to (${C}) step (${T}) shared_outs(%o = %out0) -> (tensor<${C}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0, 0] [${T}, ${H}, ${H}] [1, 1, 1] : tensor<${C}x${H}x${H}xf32> to tensor<${T}x${H}x${H}xf32>
    %e = tensor.empty() : tensor<${T}xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e : tensor<${T}xf32>) -> tensor<${T}xf32>
    %sum = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction", "reduction"]} ins(%sx : tensor<${T}x${H}x${H}xf32>) outs(%none : tensor<${T}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<${T}xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%sum : tensor<${T}xf32>) outs(%e : tensor<${T}xf32>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.divf %p, %count : f32
      linalg.yield %0 : f32
    } -> tensor<${T}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i] [${T}] [1] : tensor<${T}xf32> into tensor<${C}xf32>
    }
  }
  return %r : tensor<${C}xf32>
}
