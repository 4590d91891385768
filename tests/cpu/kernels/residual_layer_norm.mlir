// layer_norm(x + y) * w + b over the last dimension, rows in tiles.
#row = affine_map<(d0, d1) -> (d0, d1)>
#per_row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<${M}x${N}xf32>, %y: tensor<${M}x${N}xf32>, %w: tensor<${N}xf32>, %b: tensor<${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %count = arith.constant ${N}.0 : f32
  %eps = arith.constant 1.000000e-05 : f32
  %r = scf.forall (%i) = (0) to (${M}) step (${T}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %sy = tensor.extract_slice %y[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %e = tensor.empty() : tensor<${T}x${N}xf32>
    %e1 = tensor.empty() : tensor<${T}xf32>
    %added = linalg.add ins(%sx, %sy : tensor<${T}x${N}xf32>, tensor<${T}x${N}xf32>) outs(%e : tensor<${T}x${N}xf32>) -> tensor<${T}x${N}xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<${T}xf32>) -> tensor<${T}xf32>
    %sum = linalg.generic {indexing_maps = [#row, #per_row], iterator_types = ["parallel", "reduction"]} ins(%added : tensor<${T}x${N}xf32>) outs(%none : tensor<${T}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<${T}xf32>
    %mean = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%sum : tensor<${T}xf32>) outs(%e1 : tensor<${T}xf32>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.divf %p, %count : f32
      linalg.yield %0 : f32
    } -> tensor<${T}xf32>
    %centred = linalg.generic {indexing_maps = [#row, #per_row, #row], iterator_types = ["parallel", "parallel"]} ins(%added, %mean : tensor<${T}x${N}xf32>, tensor<${T}xf32>) outs(%e : tensor<${T}x${N}xf32>) {
    ^bb0(%p: f32, %m: f32, %u: f32):
      %0 = arith.subf %p, %m : f32
      linalg.yield %0 : f32
    } -> tensor<${T}x${N}xf32>
    %squares = linalg.generic {indexing_maps = [#row, #per_row], iterator_types = ["parallel", "reduction"]} ins(%centred : tensor<${T}x${N}xf32>) outs(%none : tensor<${T}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.mulf %p, %p : f32
      %1 = arith.addf %0, %acc : f32
      linalg.yield %1 : f32
    } -> tensor<${T}xf32>
    %scale = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%squares : tensor<${T}xf32>) outs(%e1 : tensor<${T}xf32>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.divf %p, %count : f32
      %1 = arith.addf %0, %eps : f32
      %2 = math.rsqrt %1 : f32
      linalg.yield %2 : f32
    } -> tensor<${T}xf32>
    %z = linalg.generic {indexing_maps = [#row, #per_row, #column, #column, #row], iterator_types = ["parallel", "parallel"]} ins(%centred, %scale, %w, %b : tensor<${T}x${N}xf32>, tensor<${T}xf32>, tensor<${N}xf32>, tensor<${N}xf32>) outs(%e : tensor<${T}x${N}xf32>) {
    ^bb0(%p: f32, %s: f32, %g: f32, %h: f32, %u: f32):
      %0 = arith.mulf %p, %s : f32
      %1 = arith.mulf %0, %g : f32
      %2 = arith.addf %1, %h : f32
      linalg.yield %2 : f32
    } -> tensor<${T}x${N}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[%i, 0] [${T}, ${N}] [1, 1] : tensor<${T}x${N}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
