// Rows found by values, their sum and norm; rows along another loop; a gather of what
// an operator makes.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#turned = affine_map<(i, j) -> (j, i)>
func.func @main(%words: tensor<9x12xf32>, %kinds: tensor<2x12xf32>, %x: tensor<6x12xf32>)
    -> (tensor<6x12xf32>, tensor<12x6xf32>, tensor<6x12xf32>) {
  %zero = arith.constant 0.0 : f32
  %nine = arith.constant 9 : index
  %two = arith.constant 2 : index
  %e = tensor.empty() : tensor<6x12xf32>
  %et = tensor.empty() : tensor<12x6xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi64>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %ids = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} outs(%ei : tensor<6xi64>) {
  ^bb0(%u: i64):
    %0 = linalg.index 0 : index
    %1 = arith.muli %0, %0 : index
    %2 = arith.remui %1, %nine : index
    %3 = arith.index_cast %2 : index to i64
    linalg.yield %3 : i64
  } -> tensor<6xi64>
  %a = linalg.generic {indexing_maps = [#row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<6xi64>) outs(%e : tensor<6x12xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = linalg.index 1 : index
    %2 = tensor.extract %words[%0, %1] : tensor<9x12xf32>
    linalg.yield %2 : f32
  } -> tensor<6x12xf32>
  %b = linalg.generic {indexing_maps = [#row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<6xi64>) outs(%e : tensor<6x12xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = arith.remui %0, %two : index
    %2 = linalg.index 1 : index
    %3 = tensor.extract %kinds[%1, %2] : tensor<2x12xf32>
    linalg.yield %3 : f32
  } -> tensor<6x12xf32>
  %s = linalg.add ins(%a, %b : tensor<6x12xf32>, tensor<6x12xf32>)
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
  %t = linalg.generic {indexing_maps = [#column, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<6xi64>) outs(%et : tensor<12x6xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = linalg.index 0 : index
    %2 = tensor.extract %words[%0, %1] : tensor<9x12xf32>
    linalg.yield %2 : f32
  } -> tensor<12x6xf32>
  %made = linalg.exp ins(%x : tensor<6x12xf32>) outs(%e : tensor<6x12xf32>)
    -> tensor<6x12xf32>
  %g = linalg.generic {indexing_maps = [#id],
      iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x12xf32>) {
  ^bb0(%u: f32):
    %five = arith.constant 5 : index
    %0 = linalg.index 0 : index
    %1 = arith.subi %five, %0 : index
    %2 = linalg.index 1 : index
    %3 = tensor.extract %made[%1, %2] : tensor<6x12xf32>
    linalg.yield %3 : f32
  } -> tensor<6x12xf32>
  return %norm, %t, %g : tensor<6x12xf32>, tensor<12x6xf32>, tensor<6x12xf32>
}
