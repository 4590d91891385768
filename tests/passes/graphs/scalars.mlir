// Tensors without dimensions, an empty one, one element, a row reversed.
func.func @main(%x: tensor<5xf32>, %y: tensor<f32>, %z: tensor<0x3xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<0x3xf32>, tensor<3xf32>, tensor<5xf32>,
        tensor<5x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
      affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%x : tensor<5xf32>) outs(%f : tensor<f32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %more = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>,
      affine_map<() -> ()>], iterator_types = []}
    ins(%sum, %y : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %ez = tensor.empty() : tensor<0x3xf32>
  %none = linalg.exp ins(%z : tensor<0x3xf32>) outs(%ez : tensor<0x3xf32>)
    -> tensor<0x3xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %column = linalg.reduce {arith.addf} ins(%none : tensor<0x3xf32>)
    outs(%f3 : tensor<3xf32>) dimensions = [0]
  %e5 = tensor.empty() : tensor<5xf32>
  %back = linalg.generic {indexing_maps = [affine_map<(i) -> (4 - i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%e5 : tensor<5xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  } -> tensor<5xf32>
  %e51 = tensor.empty() : tensor<5x1xf32>
  %one = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
      affine_map<(i) -> ()>, affine_map<(i) -> (i, 0)>], iterator_types = ["parallel"]}
    ins(%back, %more : tensor<5xf32>, tensor<f32>) outs(%e51 : tensor<5x1xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x1xf32>
  return %sum, %more, %none, %column, %back, %one : tensor<f32>, tensor<f32>,
    tensor<0x3xf32>, tensor<3xf32>, tensor<5xf32>, tensor<5x1xf32>
}
