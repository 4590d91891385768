// RUN: magweld-opt --absorb-transpose %s | filecheck %s

#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#wide = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-DAG: #[[LEFT:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RIGHT:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[OUTER:.+]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
// CHECK-DAG: #[[WIDE:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @contraction(
// CHECK-SAME:      %[[A:.+]]: tensor<8x4xf32>, %[[B:.+]]: tensor<6x4xf32>, %{{.+}}: tensor<8x6xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #[[RESULT]]]
// CHECK-SAME:      ins(%[[A]], %[[B]] : tensor<8x4xf32>, tensor<6x4xf32>)
func.func @contraction(%a: tensor<8x4xf32>, %b: tensor<6x4xf32>,
                       %c: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%b : tensor<6x4xf32>) outs(%empty : tensor<4x6xf32>)
      permutation = [1, 0]
  %0 = linalg.generic {indexing_maps = [#left, #right, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %t : tensor<8x4xf32>, tensor<4x6xf32>) outs(%c : tensor<8x6xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %r, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// Rows stay whole: the outer dimensions are read in the other order.
// CHECK-LABEL: func.func @outer(
// CHECK-SAME:      %[[X:.+]]: tensor<3x8x16xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[OUTER]], #[[WIDE]]]
// CHECK-SAME:      ins(%[[X]] : tensor<3x8x16xf32>)
func.func @outer(%x: tensor<3x8x16xf32>) -> tensor<8x3x16xf32> {
  %empty = tensor.empty() : tensor<8x3x16xf32>
  %t = linalg.transpose ins(%x : tensor<3x8x16xf32>)
      outs(%empty : tensor<8x3x16xf32>) permutation = [1, 0, 2]
  %0 = linalg.generic {indexing_maps = [#wide, #wide],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<8x3x16xf32>) outs(%empty : tensor<8x3x16xf32>) {
  ^bb0(%p: f32, %q: f32):
    %1 = math.exp %p : f32
    linalg.yield %1 : f32
  } -> tensor<8x3x16xf32>
  return %0 : tensor<8x3x16xf32>
}

// CHECK-LABEL: func.func @innermost(
// CHECK:         %[[T:.+]] = linalg.transpose
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[T]] : tensor<8x3xf32>)
func.func @innermost(%x: tensor<3x8xf32>) -> tensor<8x3xf32> {
  %empty = tensor.empty() : tensor<8x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x8xf32>) outs(%empty : tensor<8x3xf32>)
      permutation = [1, 0]
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<8x3xf32>) outs(%empty : tensor<8x3xf32>) {
  ^bb0(%p: f32, %q: f32):
    %1 = math.exp %p : f32
    linalg.yield %1 : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// The only reader of a product is a transpose: it is written in that order.
// CHECK-LABEL: func.func @written(
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[INIT:.+]] = linalg.fill {{.+}} -> tensor<8x2x6xf32>
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK-SAME:      outs(%[[INIT]] : tensor<8x2x6xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         return %[[R]]
func.func @written(%a: tensor<2x8x4xf32>, %b: tensor<2x4x6xf32>)
    -> tensor<8x2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x8x6xf32>)
      -> tensor<2x8x6xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>,
                       affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>,
                       affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<2x8x4xf32>, tensor<2x4x6xf32>)
      outs(%init : tensor<2x8x6xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %r, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<2x8x6xf32>
  %turned = tensor.empty() : tensor<8x2x6xf32>
  %t = linalg.transpose ins(%0 : tensor<2x8x6xf32>)
      outs(%turned : tensor<8x2x6xf32>) permutation = [1, 0, 2]
  return %t : tensor<8x2x6xf32>
}
