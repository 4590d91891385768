// What a graph may return: arguments, constants, fills, nothing made, one value twice.
func.func @main(%x: tensor<3xf32>, %unused: tensor<2xf32>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>,
        tensor<4xf32>, tensor<1x3xf32>, tensor<3xf32>) {
  %one = arith.constant 1.0 : f32
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %same = arith.constant dense<3.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<3xf32>
  %dead = linalg.exp ins(%unused : tensor<2xf32>) outs(%table : tensor<2xf32>)
    -> tensor<2xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [1, 3]
    : tensor<3xf32> into tensor<1x3xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%0 : tensor<3xf32>) outs(%x : tensor<3xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %x, %0, %0, %table, %same, %ones, %1, %2 : tensor<3xf32>, tensor<3xf32>,
    tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<1x3xf32>,
    tensor<3xf32>
}
