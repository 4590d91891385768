// Queries, keys and values in one product, read through slices of fewer dimensions.
#left = affine_map<(h, i, j, k) -> (i, h, k)>
#right = affine_map<(h, i, j, k) -> (j, h, k)>
#scores = affine_map<(h, i, j, k) -> (h, i, j)>
#flat = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<6x3x2x4xf32>) -> (tensor<2x6x6xf32>, tensor<6x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<6x3x2x4xf32>
  %qkv = linalg.exp ins(%x : tensor<6x3x2x4xf32>) outs(%e0 : tensor<6x3x2x4xf32>)
    -> tensor<6x3x2x4xf32>
  %q = tensor.extract_slice %qkv[0, 0, 0, 0] [6, 1, 2, 4] [1, 1, 1, 1]
    : tensor<6x3x2x4xf32> to tensor<6x2x4xf32>
  %k = tensor.extract_slice %qkv[0, 1, 0, 0] [6, 1, 2, 4] [1, 1, 1, 1]
    : tensor<6x3x2x4xf32> to tensor<6x2x4xf32>
  %e1 = tensor.empty() : tensor<2x6x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x6x6xf32>)
    -> tensor<2x6x6xf32>
  %s = linalg.generic {indexing_maps = [#left, #right, #scores],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<6x2x4xf32>, tensor<6x2x4xf32>)
      outs(%init : tensor<2x6x6xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %r : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<2x6x6xf32>
  %one = tensor.extract_slice %qkv[0, 2, 1, 0] [6, 1, 1, 4] [1, 1, 1, 1]
    : tensor<6x3x2x4xf32> to tensor<6x4xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %v = linalg.generic {indexing_maps = [#flat, #flat],
                       iterator_types = ["parallel", "parallel"]}
      ins(%one : tensor<6x4xf32>) outs(%e2 : tensor<6x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %a = arith.addf %p, %p : f32
    linalg.yield %a : f32
  } -> tensor<6x4xf32>
  return %s, %v : tensor<2x6x6xf32>, tensor<6x4xf32>
}
