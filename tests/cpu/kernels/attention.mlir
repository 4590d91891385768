// softmax(q k^T * scale + mask) v for each of B heads of D channels, in one kernel.
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#per_row = affine_map<(d0, d1, d2) -> (d0, d1)>
#column = affine_map<(d0, d1, d2) -> (d2)>
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @kernel_0(%q: tensor<${B}x${S}x${D}xf32>, %k: tensor<${B}x${S}x${D}xf32>, %v: tensor<${B}x${S}x${D}xf32>, %mask: tensor<${S}xf32>, %out0: tensor<${B}x${S}x${D}xf32>) -> tensor<${B}x${S}x${D}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %r = scf.forall (%i, %j) = (0, 0) to (${B}, ${S}) step (1, ${T}) shared_outs(%o = %out0) -> (tensor<${B}x${S}x${D}xf32>) {
    %sq = tensor.extract_slice %q[%i, %j, 0] [1, ${T}, ${D}] [1, 1, 1] : tensor<${B}x${S}x${D}xf32> to tensor<1x${T}x${D}xf32>
    %sk = tensor.extract_slice %k[%i, 0, 0] [1, ${S}, ${D}] [1, 1, 1] : tensor<${B}x${S}x${D}xf32> to tensor<1x${S}x${D}xf32>
    %sv = tensor.extract_slice %v[%i, 0, 0] [1, ${S}, ${D}] [1, 1, 1] : tensor<${B}x${S}x${D}xf32> to tensor<1x${S}x${D}xf32>
    %e = tensor.empty() : tensor<1x${T}x${S}xf32>
    %e1 = tensor.empty() : tensor<1x${T}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%e : tensor<1x${T}x${S}xf32>) -> tensor<1x${T}x${S}xf32>
    %scores = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%sq, %sk : tensor<1x${T}x${D}xf32>, tensor<1x${S}x${D}xf32>) outs(%blank : tensor<1x${T}x${S}xf32>) {
    ^bb0(%p: f32, %t: f32, %acc: f32):
      %0 = arith.mulf %p, %t : f32
      %1 = arith.addf %acc, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x${T}x${S}xf32>
    %added = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%scores, %mask : tensor<1x${T}x${S}xf32>, tensor<${S}xf32>) outs(%e : tensor<1x${T}x${S}xf32>) {
    ^bb0(%p: f32, %t: f32, %u: f32):
      %0 = arith.mulf %p, %scale : f32
      %1 = arith.addf %0, %t : f32
      linalg.yield %1 : f32
    } -> tensor<1x${T}x${S}xf32>
    %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<1x${T}xf32>) -> tensor<1x${T}xf32>
    %max = linalg.generic {indexing_maps = [#all, #per_row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%added : tensor<1x${T}x${S}xf32>) outs(%low : tensor<1x${T}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.maximumf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<1x${T}xf32>
    %exp = linalg.generic {indexing_maps = [#all, #per_row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%added, %max : tensor<1x${T}x${S}xf32>, tensor<1x${T}xf32>) outs(%e : tensor<1x${T}x${S}xf32>) {
    ^bb0(%p: f32, %m: f32, %u: f32):
      %0 = arith.subf %p, %m : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x${T}x${S}xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x${T}xf32>) -> tensor<1x${T}xf32>
    %sum = linalg.generic {indexing_maps = [#all, #per_row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<1x${T}x${S}xf32>) outs(%none : tensor<1x${T}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<1x${T}xf32>
    %weights = linalg.generic {indexing_maps = [#all, #per_row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<1x${T}x${S}xf32>, tensor<1x${T}xf32>) outs(%e : tensor<1x${T}x${S}xf32>) {
    ^bb0(%p: f32, %t: f32, %u: f32):
      %0 = arith.divf %p, %t : f32
      linalg.yield %0 : f32
    } -> tensor<1x${T}x${S}xf32>
    %so = tensor.extract_slice %o[%i, %j, 0] [1, ${T}, ${D}] [1, 1, 1] : tensor<${B}x${S}x${D}xf32> to tensor<1x${T}x${D}xf32>
    %clear = linalg.fill ins(%zero : f32) outs(%so : tensor<1x${T}x${D}xf32>) -> tensor<1x${T}x${D}xf32>
    %y = linalg.batch_matmul ins(%weights, %sv : tensor<1x${T}x${S}xf32>, tensor<1x${S}x${D}xf32>) outs(%clear : tensor<1x${T}x${D}xf32>) -> tensor<1x${T}x${D}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j, 0] [1, ${T}, ${D}] [1, 1, 1] : tensor<1x${T}x${D}xf32> into tensor<${B}x${S}x${D}xf32>
    }
  }
  return %r : tensor<${B}x${S}x${D}xf32>
}
