// relu(x + b), rows in tiles.
#row = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @kernel_0(%x: tensor<${M}x${N}xf32>, %b: tensor<${N}xf32>, %out0: tensor<${M}x${N}xf32>) -> tensor<${M}x${N}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i) = (0) to (${M}) step (${T}) shared_outs(%o = %out0) -> (tensor<${M}x${N}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %so = tensor.extract_slice %o[%i, 0] [${T}, ${N}] [1, 1] : tensor<${M}x${N}xf32> to tensor<${T}x${N}xf32>
    %y = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "parallel"]} ins(%sx, %b : tensor<${T}x${N}xf32>, tensor<${N}xf32>) outs(%so : tensor<${T}x${N}xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      %1 = arith.cmpf ugt, %0, %zero : f32
      %2 = arith.select %1, %0, %zero : f32
      linalg.yield %2 : f32
    } -> tensor<${T}x${N}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [${T}, ${N}] [1, 1] : tensor<${T}x${N}xf32> into tensor<${M}x${N}xf32>
    }
  }
  return %r : tensor<${M}x${N}xf32>
}
