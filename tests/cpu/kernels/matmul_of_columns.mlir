// The transpose of a, times b: rows of the result are neighbours in a.
func.func @kernel_0(%a: tensor<${K}x${M}xf32>, %b: tensor<${K}x${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i, %j) = (0, 0) to (${M}, ${N}) step (${TM}, ${TN}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sa = tensor.extract_slice %a[0, %i] [${K}, ${TM}] [1, 1] : tensor<${K}x${M}xf32> to tensor<${K}x${TM}xf32>
    %sb = tensor.extract_slice %b[0, %j] [${K}, ${TN}] [1, 1] : tensor<${K}x${N}xf32> to tensor<${K}x${TN}xf32>
    %so = tensor.extract_slice %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${TM}x${TN}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%so : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%sa, %sb : tensor<${K}x${TM}xf32>, tensor<${K}x${TN}xf32>) outs(%blank : tensor<${TM}x${TN}xf32>) {
    ^bb0(%p: f32, %q: f32, %acc: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %acc, %m : f32
      linalg.yield %s : f32
    } -> tensor<${TM}x${TN}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${TM}x${TN}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
