// relu(a b^T + bias), then a second product of it.
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<49x7xf32>, %b: tensor<197x7xf32>, %bias: tensor<197xf32>,
    %c: tensor<197x3xf32>) -> tensor<49x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<49x197xf32>
  %e1 = tensor.empty() : tensor<49x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<49x197xf32>) -> tensor<49x197xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<49x3xf32>) -> tensor<49x3xf32>
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<49x7xf32>, tensor<197x7xf32>)
    outs(%f : tensor<49x197xf32>) -> tensor<49x197xf32>
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%0, %bias : tensor<49x197xf32>, tensor<197xf32>)
    outs(%e : tensor<49x197xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<49x197xf32>
  %2 = linalg.matmul ins(%1, %c : tensor<49x197xf32>, tensor<197x3xf32>)
    outs(%f1 : tensor<49x3xf32>) -> tensor<49x3xf32>
  return %2 : tensor<49x3xf32>
}
