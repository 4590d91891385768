// Slices, a pad of its own, a concatenation, reshapes and constants as data.
func.func @main(%x: tensor<4x6xf32>) -> (tensor<7x6xf32>, tensor<2x2x8xf32>) {
  %one = arith.constant 1.0 : f32
  %table = arith.constant dense<[[0.5, 1.5, -2.0, 3.0, 4.0, 5.0]]> : tensor<1x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.exp ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>)
    -> tensor<4x6xf32>
  %1 = tensor.extract_slice %0[1, 0] [2, 6] [2, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %2 = tensor.concat dim(0) %1, %table, %0
    : (tensor<2x6xf32>, tensor<1x6xf32>, tensor<4x6xf32>) -> tensor<7x6xf32>
  %3 = tensor.pad %0 low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<4x6xf32> to tensor<4x8xf32>
  %4 = tensor.expand_shape %3 [[0, 1], [2]] output_shape [2, 2, 8]
    : tensor<4x8xf32> into tensor<2x2x8xf32>
  %e1 = tensor.empty() : tensor<2x2x8xf32>
  %5 = linalg.exp ins(%4 : tensor<2x2x8xf32>) outs(%e1 : tensor<2x2x8xf32>)
    -> tensor<2x2x8xf32>
  return %2, %5 : tensor<7x6xf32>, tensor<2x2x8xf32>
}
