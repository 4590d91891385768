// Permuted reads, a named transpose, and a tensor beside its own transpose.
#id = affine_map<(i, j, k) -> (i, j, k)>
func.func @main(%x: tensor<4x6x5xf32>, %y: tensor<6x6xf32>)
    -> (tensor<5x4x6xf32>, tensor<6x6xf32>) {
  %e = tensor.empty() : tensor<4x6x5xf32>
  %0 = linalg.exp ins(%x : tensor<4x6x5xf32>) outs(%e : tensor<4x6x5xf32>)
    -> tensor<4x6x5xf32>
  %e1 = tensor.empty() : tensor<6x5x4xf32>
  %1 = linalg.transpose ins(%0 : tensor<4x6x5xf32>) outs(%e1 : tensor<6x5x4xf32>)
    permutation = [1, 2, 0]
  %e2 = tensor.empty() : tensor<5x4x6xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>,
      affine_map<(i, j, k) -> (j, k, i)>, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%1, %0 : tensor<6x5x4xf32>, tensor<4x6x5xf32>)
    outs(%e2 : tensor<5x4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x4x6xf32>
  %e3 = tensor.empty() : tensor<6x6xf32>
  %3 = linalg.exp ins(%y : tensor<6x6xf32>) outs(%e3 : tensor<6x6xf32>)
    -> tensor<6x6xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
    ins(%3, %3 : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e3 : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  return %2, %4 : tensor<5x4x6xf32>, tensor<6x6xf32>
}
