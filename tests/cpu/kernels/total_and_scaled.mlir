// x + y, and that times the sums of its rows, rows in tiles.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @kernel_0(%x: tensor<${M}x${N}x${T}>, %y: tensor<${M}x${N}x${T}>, %s: tensor<${M}x${N}x${T}>, %n: tensor<${M}x${N}x${T}>)
    -> (tensor<${M}x${N}x${T}>, tensor<${M}x${N}x${T}>) attributes {tile_graph.kernel, tile_graph.nontemporal = ${WHICH}} {
  %zero = arith.constant 0.0 : ${T}
  %r:2 = scf.forall (%i) = (0) to (${M}) step (${R}) shared_outs(%a = %s, %b = %n) -> (tensor<${M}x${N}x${T}>, tensor<${M}x${N}x${T}>) {
    %p = tensor.extract_slice %x[%i, 0] [${R}, ${N}] [1, 1] : tensor<${M}x${N}x${T}> to tensor<${R}x${N}x${T}>
    %q = tensor.extract_slice %y[%i, 0] [${R}, ${N}] [1, 1] : tensor<${M}x${N}x${T}> to tensor<${R}x${N}x${T}>
    %into = tensor.extract_slice %a[%i, 0] [${R}, ${N}] [1, 1] : tensor<${M}x${N}x${T}> to tensor<${R}x${N}x${T}>
    %total = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<${R}x${N}x${T}>, tensor<${R}x${N}x${T}>) outs(%into : tensor<${R}x${N}x${T}>) {
    ^bb0(%u: ${T}, %v: ${T}, %o: ${T}):
      %0 = arith.addf %u, %v : ${T}
      linalg.yield %0 : ${T}
    } -> tensor<${R}x${N}x${T}>
    %e = tensor.empty() : tensor<${R}x${T}>
    %z = linalg.fill ins(%zero : ${T}) outs(%e : tensor<${R}x${T}>) -> tensor<${R}x${T}>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%total : tensor<${R}x${N}x${T}>) outs(%z : tensor<${R}x${T}>) {
    ^bb0(%u: ${T}, %o: ${T}):
      %0 = arith.addf %u, %o : ${T}
      linalg.yield %0 : ${T}
    } -> tensor<${R}x${T}>
    %other = tensor.extract_slice %b[%i, 0] [${R}, ${N}] [1, 1] : tensor<${M}x${N}x${T}> to tensor<${R}x${N}x${T}>
    %scaled = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%total, %sum : tensor<${R}x${N}x${T}>, tensor<${R}x${T}>) outs(%other : tensor<${R}x${N}x${T}>) {
    ^bb0(%u: ${T}, %v: ${T}, %o: ${T}):
      %0 = arith.mulf %u, %v : ${T}
      linalg.yield %0 : ${T}
    } -> tensor<${R}x${N}x${T}>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %total into %a[%i, 0] [${R}, ${N}] [1, 1] : tensor<${R}x${N}x${T}> into tensor<${M}x${N}x${T}>
      tensor.parallel_insert_slice %scaled into %b[%i, 0] [${R}, ${N}] [1, 1] : tensor<${R}x${N}x${T}> into tensor<${M}x${N}x${T}>
    }
  }
  return %r#0, %r#1 : tensor<${M}x${N}x${T}>, tensor<${M}x${N}x${T}>
}
