// gelu(x + b) with the error function, rows in tiles.
#row = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @kernel_0(%x: tensor<${M}x${N}xf32>, %b: tensor<${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %half = arith.constant 5.000000e-01 : f32
  %one = arith.constant 1.000000e+00 : f32
  %root = arith.constant 0.707106769 : f32
  %r = scf.forall (%i) = (0) to (${M}) step (${T}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %e = tensor.empty() : tensor<${T}x${N}xf32>
    %added = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "parallel"]} ins(%sx, %b : tensor<${T}x${N}xf32>, tensor<${N}xf32>) outs(%e : tensor<${T}x${N}xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<${T}x${N}xf32>
    %so = tensor.extract_slice %o[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %y = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%added : tensor<${T}x${N}xf32>) outs(%so : tensor<${T}x${N}xf32>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.mulf %p, %half : f32
      %1 = arith.mulf %p, %root : f32
      %2 = math.erf %1 : f32
      %3 = arith.addf %2, %one : f32
      %4 = arith.mulf %0, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<${T}x${N}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [${T}, ${N}] [1, 1] : tensor<${T}x${N}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
