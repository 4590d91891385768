// RUN: magweld-opt --absorb-unit-dims %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d0, 0)>
#wide = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// A row statistic that was given a dimension of extent one is read as it was.
// CHECK: #[[ALL:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[ROW:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @column(
// CHECK-SAME:      %[[X:.+]]: tensor<8x64xf32>, %[[M:.+]]: tensor<8xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]]
// CHECK-SAME:      ins(%[[X]], %[[M]] : tensor<8x64xf32>, tensor<8xf32>)
func.func @column(%x: tensor<8x64xf32>, %m: tensor<8xf32>) -> tensor<8x64xf32> {
  %e = tensor.expand_shape %m [[0, 1]] output_shape [8, 1]
      : tensor<8xf32> into tensor<8x1xf32>
  %empty = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #column, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %e : tensor<8x64xf32>, tensor<8x1xf32>)
      outs(%empty : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// A dimension that is really split has no counterpart in the source.
// CHECK-LABEL: func.func @split(
// CHECK:         %[[E:.+]] = tensor.expand_shape
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[E]] : tensor<2x4x64xf32>)
func.func @split(%m: tensor<8x64xf32>) -> tensor<2x4x64xf32> {
  %e = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 4, 64]
      : tensor<8x64xf32> into tensor<2x4x64xf32>
  %empty = tensor.empty() : tensor<2x4x64xf32>
  %0 = linalg.generic {indexing_maps = [#wide, #wide],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x4x64xf32>) outs(%empty : tensor<2x4x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x64xf32>
  return %0 : tensor<2x4x64xf32>
}

// A loop that nothing else indexes keeps the operand that tells its extent.
// CHECK-LABEL: func.func @only_index(
// CHECK:         %[[E:.+]] = tensor.expand_shape
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[E]] : tensor<8x1xf32>)
func.func @only_index(%m: tensor<8xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.expand_shape %m [[0, 1]] output_shape [8, 1]
      : tensor<8xf32> into tensor<8x1xf32>
  %0 = linalg.generic {indexing_maps = [#all, affine_map<(d0, d1) -> (d0)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x1xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
