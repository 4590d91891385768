// A mask from positions, i1 tensors, a gather by i64 positions.
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<6x4xf32>, %at: tensor<6xi64>, %keep: tensor<6x4xi1>)
    -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xi1>) {
  %lowest = arith.constant -1.0e4 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %em = tensor.empty() : tensor<6x4xi1>
  %0 = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%keep : tensor<6x4xi1>) outs(%em : tensor<6x4xi1>) {
  ^bb0(%k: i1, %u: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi uge, %i, %j : index
    %b = arith.andi %c, %k : i1
    linalg.yield %b : i1
  } -> tensor<6x4xi1>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%0, %x : tensor<6x4xi1>, tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%b: i1, %p: f32, %u: f32):
    %s = arith.select %b, %p, %lowest : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%at : tensor<6xi64>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%p: i64, %u: f32):
    %i = arith.index_cast %p : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<6x4xf32>
    linalg.yield %v : f32
  } -> tensor<6x4xf32>
  %3 = linalg.exp ins(%2 : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>)
    -> tensor<6x4xf32>
  return %1, %3, %0 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xi1>
}
