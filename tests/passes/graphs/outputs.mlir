// A sum is a result and what a norm of its rows reads; a product is read beside its
// activation; windows over what is a result too would store their borders twice.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#turned = affine_map<(i, j) -> (j, i)>
func.func @main(%x: tensor<6x12xf32>, %r: tensor<6x12xf32>, %w: tensor<12x4xf32>)
    -> (tensor<6x12xf32>, tensor<6x12xf32>, tensor<6x4xf32>, tensor<4x6xf32>,
        tensor<6x10xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x12xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %ep = tensor.empty() : tensor<6x4xf32>
  %et = tensor.empty() : tensor<4x6xf32>
  %ew = tensor.empty() : tensor<6x10xf32>
  %taps = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %fp = linalg.fill ins(%zero : f32) outs(%ep : tensor<6x4xf32>) -> tensor<6x4xf32>
  %fw = linalg.fill ins(%lowest : f32) outs(%ew : tensor<6x10xf32>)
    -> tensor<6x10xf32>
  %s = linalg.add ins(%x, %r : tensor<6x12xf32>, tensor<6x12xf32>)
    outs(%e : tensor<6x12xf32>) -> tensor<6x12xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%s : tensor<6x12xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %acc, %p : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  %norm = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%s, %sum : tensor<6x12xf32>, tensor<6xf32>) outs(%e : tensor<6x12xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<6x12xf32>
  %product = linalg.matmul ins(%norm, %w : tensor<6x12xf32>, tensor<12x4xf32>)
    outs(%fp : tensor<6x4xf32>) -> tensor<6x4xf32>
  %active = linalg.generic {indexing_maps = [#id, #turned],
      iterator_types = ["parallel", "parallel"]}
    ins(%product : tensor<6x4xf32>) outs(%et : tensor<4x6xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.maximumf %p, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %window = linalg.generic {indexing_maps = [
      affine_map<(i, j, k) -> (i, j + k)>, affine_map<(i, j, k) -> (k)>,
      affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%norm, %taps : tensor<6x12xf32>, tensor<3xf32>)
    outs(%fw : tensor<6x10xf32>) {
  ^bb0(%p: f32, %k: f32, %u: f32):
    %0 = arith.maximumf %p, %u : f32
    linalg.yield %0 : f32
  } -> tensor<6x10xf32>
  return %s, %norm, %product, %active, %window
    : tensor<6x12xf32>, tensor<6x12xf32>, tensor<6x4xf32>, tensor<4x6xf32>,
      tensor<6x10xf32>
}
