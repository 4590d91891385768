// Windows that hang over edges inside a group: strides, dilations, one border of ones.
func.func @main(%x: tensor<2x3x12x8xf32>, %k0: tensor<4x3x3x3xf32>,
    %k1: tensor<4x3x3xf32>, %k2: tensor<4x3x2xf32>) -> tensor<2x4x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x3x12x8xf32> to tensor<2x3x14x10xf32>
  %e0 = tensor.empty() : tensor<2x4x12x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x4x12x8xf32>)
    -> tensor<2x4x12x8xf32>
  %0 = linalg.conv_2d_nchw_fchw
    ins(%p0, %k0 : tensor<2x3x14x10xf32>, tensor<4x3x3x3xf32>)
    outs(%f0 : tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
  %1 = linalg.abs ins(%0 : tensor<2x4x12x8xf32>) outs(%e0 : tensor<2x4x12x8xf32>)
    -> tensor<2x4x12x8xf32>
  %p1 = tensor.pad %1 low[0, 0, 3, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %one : f32
  } : tensor<2x4x12x8xf32> to tensor<2x4x17x12xf32>
  %e1 = tensor.empty() : tensor<2x4x7x4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x4x7x4xf32>)
    -> tensor<2x4x7x4xf32>
  %2 = linalg.depthwise_conv_2d_nchw_chw
    {strides = dense<2> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
    ins(%p1, %k1 : tensor<2x4x17x12xf32>, tensor<4x3x3xf32>)
    outs(%f1 : tensor<2x4x7x4xf32>) -> tensor<2x4x7x4xf32>
  %p2 = tensor.pad %2 low[0, 0, 0, 2] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x4x7x4xf32> to tensor<2x4x8x7xf32>
  %e2 = tensor.empty() : tensor<2x4x6x6xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x4x6x6xf32>)
    -> tensor<2x4x6x6xf32>
  %3 = linalg.depthwise_conv_2d_nchw_chw
    ins(%p2, %k2 : tensor<2x4x8x7xf32>, tensor<4x3x2xf32>)
    outs(%f2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  return %3 : tensor<2x4x6x6xf32>
}
