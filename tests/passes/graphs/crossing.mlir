// Two pairs that read each other's first half: both as one kernel would be a circle.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<6x8xf32>, %y: tensor<6x8xf32>)
    -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %a = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>)
    -> tensor<6x8xf32>
  %b = linalg.negf ins(%y : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>)
    -> tensor<6x8xf32>
  %sa = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%a : tensor<6x8xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %acc, %p : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  %sb = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%b : tensor<6x8xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %acc, %p : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%b, %sa : tensor<6x8xf32>, tensor<6xf32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<6x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%a, %sb : tensor<6x8xf32>, tensor<6xf32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<6x8xf32>
  return %r, %s : tensor<6x8xf32>, tensor<6x8xf32>
}
