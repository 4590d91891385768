// relu(a b^T + bias), as a linear layer stores its weight.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @kernel_0(%a: tensor<${M}x${K}xf32>, %b: tensor<${N}x${K}xf32>, %bias: tensor<${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i, %j) = (0, 0) to (${M}, ${N}) step (${TM}, ${TN}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sa = tensor.extract_slice %a[%i, 0] [${TM}, ${K}] [1, 1] : tensor<${M}x${K}xf32> to tensor<${TM}x${K}xf32>
    %sb = tensor.extract_slice %b[%j, 0] [${TN}, ${K}] [1, 1] : tensor<${N}x${K}xf32> to tensor<${TN}x${K}xf32>
    %sbias = tensor.extract_slice %bias[%j] [${TN}] [1] : tensor<${N}xf32> to tensor<${TN}xf32>
    %e = tensor.empty() : tensor<${TM}x${TN}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%e : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    %product = linalg.matmul indexing_maps = [#a, #b, #c] ins(%sa, %sb : tensor<${TM}x${K}xf32>, tensor<${TN}x${K}xf32>) outs(%blank : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    %so = tensor.extract_slice %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${TM}x${TN}xf32>
    %y = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "parallel"]} ins(%product, %sbias : tensor<${TM}x${TN}xf32>, tensor<${TN}xf32>) outs(%so : tensor<${TM}x${TN}xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      %1 = arith.maximumf %0, %zero : f32
      linalg.yield %1 : f32
    } -> tensor<${TM}x${TN}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${TM}x${TN}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
