// RUN: magweld-opt --unflatten-batch-matmul %s | filecheck %s

// CHECK-DAG: #[[LEFT:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[RIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @both(
// CHECK-SAME:      %[[A:.+]]: tensor<2x3x8x4xf32>, %[[B:.+]]: tensor<2x3x4x6xf32>)
// CHECK-NOT:     linalg.batch_matmul
// CHECK:         %[[ZERO:.+]] = linalg.fill {{.+}} -> tensor<2x3x8x6xf32>
// CHECK:         %[[P:.+]] = linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:      ins(%[[A]], %[[B]] : tensor<2x3x8x4xf32>, tensor<2x3x4x6xf32>) outs(%[[ZERO]] :
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         %[[R:.+]] = tensor.collapse_shape %[[P]] {{\[}}[0, 1], [2], [3]]
// CHECK:         return %[[R]] : tensor<6x8x6xf32>
func.func @both(%a: tensor<2x3x8x4xf32>, %b: tensor<2x3x4x6xf32>)
    -> tensor<6x8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %fa = tensor.collapse_shape %a [[0, 1], [2], [3]]
      : tensor<2x3x8x4xf32> into tensor<6x8x4xf32>
  %fb = tensor.collapse_shape %b [[0, 1], [2], [3]]
      : tensor<2x3x4x6xf32> into tensor<6x4x6xf32>
  %empty = tensor.empty() : tensor<6x8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x8x6xf32>)
      -> tensor<6x8x6xf32>
  %r = linalg.batch_matmul ins(%fa, %fb : tensor<6x8x4xf32>, tensor<6x4x6xf32>)
      outs(%init : tensor<6x8x6xf32>) -> tensor<6x8x6xf32>
  return %r : tensor<6x8x6xf32>
}

// An operand that was not flattened is split like the other.
// CHECK-LABEL: func.func @one(
// CHECK-SAME:      %[[A:.+]]: tensor<2x3x8x4xf32>, %[[B:.+]]: tensor<6x4x6xf32>)
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[B]] {{\[}}[0, 1], [2], [3]] output_shape [2, 3, 4, 6]
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[A]], %[[E]] :
func.func @one(%a: tensor<2x3x8x4xf32>, %b: tensor<6x4x6xf32>) -> tensor<6x8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %fa = tensor.collapse_shape %a [[0, 1], [2], [3]]
      : tensor<2x3x8x4xf32> into tensor<6x8x4xf32>
  %empty = tensor.empty() : tensor<6x8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x8x6xf32>)
      -> tensor<6x8x6xf32>
  %r = linalg.batch_matmul ins(%fa, %b : tensor<6x8x4xf32>, tensor<6x4x6xf32>)
      outs(%init : tensor<6x8x6xf32>) -> tensor<6x8x6xf32>
  return %r : tensor<6x8x6xf32>
}

// CHECK-LABEL: func.func @accumulates(
// CHECK:         linalg.batch_matmul
func.func @accumulates(%a: tensor<2x3x8x4xf32>, %b: tensor<6x4x6xf32>,
                       %c: tensor<6x8x6xf32>) -> tensor<6x8x6xf32> {
  %fa = tensor.collapse_shape %a [[0, 1], [2], [3]]
      : tensor<2x3x8x4xf32> into tensor<6x8x4xf32>
  %r = linalg.batch_matmul ins(%fa, %b : tensor<6x8x4xf32>, tensor<6x4x6xf32>)
      outs(%c : tensor<6x8x6xf32>) -> tensor<6x8x6xf32>
  return %r : tensor<6x8x6xf32>
}

// CHECK-LABEL: func.func @integers(
// CHECK:         linalg.batch_matmul
func.func @integers(%a: tensor<2x3x8x4xi32>, %b: tensor<6x4x6xi32>)
    -> tensor<6x8x6xi32> {
  %zero = arith.constant 0 : i32
  %fa = tensor.collapse_shape %a [[0, 1], [2], [3]]
      : tensor<2x3x8x4xi32> into tensor<6x8x4xi32>
  %empty = tensor.empty() : tensor<6x8x6xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<6x8x6xi32>)
      -> tensor<6x8x6xi32>
  %r = linalg.batch_matmul ins(%fa, %b : tensor<6x8x4xi32>, tensor<6x4x6xi32>)
      outs(%init : tensor<6x8x6xi32>) -> tensor<6x8x6xi32>
  return %r : tensor<6x8x6xi32>
}

// Which dimension one of extent one joins says nothing about the batch.
// CHECK-LABEL: func.func @one_of_one(
// CHECK-SAME:      %[[A:.+]]: tensor<1x1x8x4xf32>, %[[B:.+]]: tensor<1x1x4x6xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[A]], %[[B]] :
func.func @one_of_one(%a: tensor<1x1x8x4xf32>, %b: tensor<1x1x4x6xf32>)
    -> tensor<1x8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %fa = tensor.collapse_shape %a [[0], [1, 2], [3]]
      : tensor<1x1x8x4xf32> into tensor<1x8x4xf32>
  %fb = tensor.collapse_shape %b [[0], [1, 2], [3]]
      : tensor<1x1x4x6xf32> into tensor<1x4x6xf32>
  %empty = tensor.empty() : tensor<1x8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x6xf32>)
      -> tensor<1x8x6xf32>
  %r = linalg.batch_matmul ins(%fa, %fb : tensor<1x8x4xf32>, tensor<1x4x6xf32>)
      outs(%init : tensor<1x8x6xf32>) -> tensor<1x8x6xf32>
  return %r : tensor<1x8x6xf32>
}
