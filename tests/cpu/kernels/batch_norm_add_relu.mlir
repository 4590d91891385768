// relu((x - mean) * rsqrt(var + eps) * w + b + y) with statistics given, NCHW.
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
func.func @kernel_0(%x: tensor<1x${C}x${H}x${H}xf32>, %y: tensor<1x${C}x${H}x${H}xf32>, %mean: tensor<${C}xf32>, %var: tensor<${C}xf32>, %w: tensor<${C}xf32>, %b: tensor<${C}xf32>, %out0: tensor<1x${C}x${H}x${H}xf32>) -> tensor<1x${C}x${H}x${H}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %eps = arith.constant 1.000000e-05 : f32
  %r = scf.forall (%i) = (0) to (${C}) step (${T}) shared_outs(%o = %out0) -> (tensor<1x${C}x${H}x${H}xf32>) {
    %sx = tensor.extract_slice %x[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${C}x${H}x${H}xf32> to tensor<1x${T}x${H}x${H}xf32>
    %sy = tensor.extract_slice %y[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${C}x${H}x${H}xf32> to tensor<1x${T}x${H}x${H}xf32>
    %sm = tensor.extract_slice %mean[%i] [${T}] [1] : tensor<${C}xf32> to tensor<${T}xf32>
    %sv = tensor.extract_slice %var[%i] [${T}] [1] : tensor<${C}xf32> to tensor<${T}xf32>
    %sw = tensor.extract_slice %w[%i] [${T}] [1] : tensor<${C}xf32> to tensor<${T}xf32>
    %sb = tensor.extract_slice %b[%i] [${T}] [1] : tensor<${C}xf32> to tensor<${T}xf32>
    %so = tensor.extract_slice %o[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${C}x${H}x${H}xf32> to tensor<1x${T}x${H}x${H}xf32>
    %z = linalg.generic {indexing_maps = [#all, #all, #channel, #channel, #channel, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sx, %sy, %sm, %sv, %sw, %sb : tensor<1x${T}x${H}x${H}xf32>, tensor<1x${T}x${H}x${H}xf32>, tensor<${T}xf32>, tensor<${T}xf32>, tensor<${T}xf32>, tensor<${T}xf32>) outs(%so : tensor<1x${T}x${H}x${H}xf32>) {
    ^bb0(%p: f32, %q: f32, %m: f32, %v: f32, %g: f32, %h: f32, %u: f32):
      %0 = arith.subf %p, %m : f32
      %1 = arith.addf %v, %eps : f32
      %2 = math.rsqrt %1 : f32
      %3 = arith.mulf %0, %2 : f32
      %4 = arith.mulf %3, %g : f32
      %5 = arith.addf %4, %h : f32
      %6 = arith.addf %5, %q : f32
      %7 = arith.maximumf %6, %zero : f32
      linalg.yield %7 : f32
    } -> tensor<1x${T}x${H}x${H}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${T}x${H}x${H}xf32> into tensor<1x${C}x${H}x${H}xf32>
    }
  }
  return %r : tensor<1x${C}x${H}x${H}xf32>
}
