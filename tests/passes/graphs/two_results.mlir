// The largest element of a row and its place; both are read, in another order as well.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#turned = affine_map<(i, j) -> (j, i)>
func.func @main(%x: tensor<6x4xf32>)
    -> (tensor<6xf32>, tensor<6xi64>, tensor<4x6xf32>, tensor<6xi64>) {
  %lowest = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi64>
  %low = linalg.fill ins(%lowest : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %zero = linalg.fill ins(%none : i64) outs(%ei : tensor<6xi64>) -> tensor<6xi64>
  %0:2 = linalg.generic {indexing_maps = [#id, #row, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<6x4xf32>) outs(%low, %zero : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%p: f32, %max: f32, %place: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %larger = arith.cmpf ogt, %p, %max : f32
    %m = arith.select %larger, %p, %max : f32
    %at = arith.select %larger, %here, %place : i64
    linalg.yield %m, %at : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  %e2 = tensor.empty() : tensor<6x4xf32>
  %et = tensor.empty() : tensor<4x6xf32>
  %1:2 = linalg.generic {indexing_maps = [#id, #id, #turned],
      iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<6x4xf32>) outs(%e2, %et : tensor<6x4xf32>, tensor<4x6xf32>) {
  ^bb0(%p: f32, %u: f32, %v: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %s = arith.addf %p, %f : f32
    linalg.yield %p, %s : f32, f32
  } -> (tensor<6x4xf32>, tensor<4x6xf32>)
  %2 = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%1#1 : tensor<4x6xf32>) outs(%et : tensor<4x6xf32>) {
  ^bb0(%p: f32, %u: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%0#1 : tensor<6xi64>) outs(%ei : tensor<6xi64>) {
  ^bb0(%p: i64, %u: i64):
    %s = arith.addi %p, %p : i64
    linalg.yield %s : i64
  } -> tensor<6xi64>
  return %0#0, %0#1, %2, %3
    : tensor<6xf32>, tensor<6xi64>, tensor<4x6xf32>, tensor<6xi64>
}
