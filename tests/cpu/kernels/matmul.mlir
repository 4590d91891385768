// a b.
func.func @kernel_0(%a: tensor<${M}x${K}xf32>, %b: tensor<${K}x${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i, %j) = (0, 0) to (${M}, ${N}) step (${TM}, ${TN}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sa = tensor.extract_slice %a[%i, 0] [${TM}, ${K}] [1, 1] : tensor<${M}x${K}xf32> to tensor<${TM}x${K}xf32>
    %sb = tensor.extract_slice %b[0, %j] [${K}, ${TN}] [1, 1] : tensor<${K}x${N}xf32> to tensor<${K}x${TN}xf32>
    %so = tensor.extract_slice %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${TM}x${TN}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%so : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    %y = linalg.matmul ins(%sa, %sb : tensor<${TM}x${K}xf32>, tensor<${K}x${TN}xf32>) outs(%blank : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [${TM}, ${TN}] [1, 1] : tensor<${TM}x${TN}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
