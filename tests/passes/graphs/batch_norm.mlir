// relu(x * scale + shift + y), scale and shift per channel, behind a 1x1 convolution.
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @main(%x: tensor<2x3x7x5xf32>, %k: tensor<4x3x1x1xf32>, %w: tensor<4xf32>,
    %b: tensor<4xf32>, %y: tensor<2x4x7x5xf32>) -> tensor<2x4x7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x7x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x7x5xf32>)
    -> tensor<2x4x7x5xf32>
  %0 = linalg.conv_2d_nchw_fchw
    ins(%x, %k : tensor<2x3x7x5xf32>, tensor<4x3x1x1xf32>)
    outs(%f : tensor<2x4x7x5xf32>) -> tensor<2x4x7x5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #channel, #channel, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%0, %w, %b : tensor<2x4x7x5xf32>, tensor<4xf32>, tensor<4xf32>)
    outs(%e : tensor<2x4x7x5xf32>) {
  ^bb0(%p: f32, %s: f32, %t: f32, %u: f32):
    %q = arith.mulf %p, %s : f32
    %r = arith.addf %q, %t : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x5xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%1, %y : tensor<2x4x7x5xf32>, tensor<2x4x7x5xf32>)
    outs(%e : tensor<2x4x7x5xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %r = arith.addf %p, %q : f32
    %s = arith.maximumf %r, %zero : f32
    linalg.yield %s : f32
  } -> tensor<2x4x7x5xf32>
  return %2 : tensor<2x4x7x5xf32>
}
