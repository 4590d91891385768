// A padded maximum and an average, behind elementwise operations.
func.func @main(%x: tensor<1x3x9x8xf32>) -> (tensor<1x3x5x4xf32>, tensor<1x3x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x3x9x8xf32>
  %0 = linalg.exp ins(%x : tensor<1x3x9x8xf32>) outs(%e : tensor<1x3x9x8xf32>)
    -> tensor<1x3x9x8xf32>
  %1 = tensor.pad %0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %lowest : f32
  } : tensor<1x3x9x8xf32> to tensor<1x3x11x10xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %e1 = tensor.empty() : tensor<1x3x5x4xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<1x3x5x4xf32>)
    -> tensor<1x3x5x4xf32>
  %2 = linalg.pooling_nchw_max
    {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%1, %window : tensor<1x3x11x10xf32>, tensor<3x3xf32>)
    outs(%low : tensor<1x3x5x4xf32>) -> tensor<1x3x5x4xf32>
  %pair = tensor.empty() : tensor<2x2xf32>
  %e2 = tensor.empty() : tensor<1x3x4x3xf32>
  %none = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x3x4x3xf32>)
    -> tensor<1x3x4x3xf32>
  %3 = linalg.pooling_nchw_sum
    ins(%2, %pair : tensor<1x3x5x4xf32>, tensor<2x2xf32>)
    outs(%none : tensor<1x3x4x3xf32>) -> tensor<1x3x4x3xf32>
  return %2, %3 : tensor<1x3x5x4xf32>, tensor<1x3x4x3xf32>
}
