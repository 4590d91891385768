// Two reductions over a row and what is made of them.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<7x12xf32>, %w: tensor<12xf32>, %b: tensor<12xf32>)
    -> tensor<7x12xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 12.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : tensor<7x12xf32>
  %e1 = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<7xf32>) -> tensor<7xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<7x12xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %acc, %p : f32
    linalg.yield %0 : f32
  } -> tensor<7xf32>
  %centred = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : tensor<7x12xf32>, tensor<7xf32>) outs(%e : tensor<7x12xf32>) {
  ^bb0(%p: f32, %s: f32, %u: f32):
    %0 = arith.divf %s, %n : f32
    %1 = arith.subf %p, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<7x12xf32>
  %squares = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%centred : tensor<7x12xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.mulf %p, %p : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<7xf32>
  %scale = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%squares : tensor<7xf32>) outs(%e1 : tensor<7xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.divf %p, %n : f32
    %1 = arith.addf %0, %eps : f32
    %2 = math.sqrt %1 : f32
    linalg.yield %2 : f32
  } -> tensor<7xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #column, #column, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%centred, %scale, %w, %b : tensor<7x12xf32>, tensor<7xf32>, tensor<12xf32>,
      tensor<12xf32>) outs(%e : tensor<7x12xf32>) {
  ^bb0(%p: f32, %s: f32, %g: f32, %o: f32, %u: f32):
    %0 = arith.divf %p, %s : f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.addf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<7x12xf32>
  return %r : tensor<7x12xf32>
}
