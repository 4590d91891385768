// relu(x @ w + bias) rounded to the type of the operands; w may be transposed.
#xk = affine_map<(m, n, k) -> (m, k)>
#wk = affine_map<(m, n, k) -> ($W)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @kernel(%x: tensor<${M}x${K}x$E>, %w: tensor<${WS}x$E>, %bias: tensor<${N}x$E>, %out: tensor<${M}x${N}x$E>)
    -> tensor<${M}x${N}x$E> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i, %j) = (0, 0) to ($M, $N) step ($TM, $TN) shared_outs(%o = %out) -> (tensor<${M}x${N}x$E>) {
    %a = tensor.extract_slice %x[%i, 0] [$TM, $K] [1, 1] : tensor<${M}x${K}x$E> to tensor<${TM}x${K}x$E>
    %b = tensor.extract_slice %w[$WO] [$WT] [1, 1] : tensor<${WS}x$E> to tensor<${WTS}x$E>
    %c = tensor.extract_slice %bias[%j] [$TN] [1] : tensor<${N}x$E> to tensor<${TN}x$E>
    %e = tensor.empty() : tensor<${TM}x${TN}xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<${TM}x${TN}xf32>) -> tensor<${TM}x${TN}xf32>
    %p = linalg.generic {indexing_maps = [#xk, #wk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<${TM}x${K}x$E>, tensor<${WTS}x$E>) outs(%f : tensor<${TM}x${TN}xf32>) {
    ^bb0(%l: $E, %rr: $E, %s: f32):
      $WIDEN
      %t = arith.mulf $FACTORS : f32
      %u = arith.addf %s, %t : f32
      linalg.yield %u : f32
    } -> tensor<${TM}x${TN}xf32>
    %d = tensor.extract_slice %o[%i, %j] [$TM, $TN] [1, 1] : tensor<${M}x${N}x$E> to tensor<${TM}x${TN}x$E>
    %y = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p, %c : tensor<${TM}x${TN}xf32>, tensor<${TN}x$E>) outs(%d : tensor<${TM}x${TN}x$E>) {
    ^bb0(%v: f32, %q: $E, %old: $E):
      $WIDEN_BIAS
      %s = arith.addf %v, $BIAS : f32
      %m = arith.maximumf %s, %zero : f32
      $NARROW
      linalg.yield $RESULT : $E
    } -> tensor<${TM}x${TN}x$E>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [$TM, $TN] [1, 1] : tensor<${TM}x${TN}x$E> into tensor<${M}x${N}x$E>
    }
  }
  return %r : tensor<${M}x${N}x$E>
}
