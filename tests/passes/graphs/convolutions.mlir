// Convolutions in a row: a halo, a stride, a dilation, depthwise, padded.
func.func @main(%x: tensor<1x2x15x13xf32>, %k0: tensor<3x2x3x3xf32>,
    %k1: tensor<4x3x2x2xf32>, %k2: tensor<4x3x3xf32>) -> tensor<1x4x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x3x13x11xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x3x13x11xf32>)
    -> tensor<1x3x13x11xf32>
  %0 = linalg.conv_2d_nchw_fchw
    ins(%x, %k0 : tensor<1x2x15x13xf32>, tensor<3x2x3x3xf32>)
    outs(%f0 : tensor<1x3x13x11xf32>) -> tensor<1x3x13x11xf32>
  %1 = linalg.exp ins(%0 : tensor<1x3x13x11xf32>) outs(%e0 : tensor<1x3x13x11xf32>)
    -> tensor<1x3x13x11xf32>
  %e1 = tensor.empty() : tensor<1x4x6x5xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x4x6x5xf32>)
    -> tensor<1x4x6x5xf32>
  %2 = linalg.conv_2d_nchw_fchw
    {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%1, %k1 : tensor<1x3x13x11xf32>, tensor<4x3x2x2xf32>)
    outs(%f1 : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  %p = tensor.pad %2 low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x6x5xf32> to tensor<1x4x10x9xf32>
  %3 = linalg.depthwise_conv_2d_nchw_chw
    {strides = dense<1> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
    ins(%p, %k2 : tensor<1x4x10x9xf32>, tensor<4x3x3xf32>)
    outs(%f1 : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  return %3 : tensor<1x4x6x5xf32>
}
