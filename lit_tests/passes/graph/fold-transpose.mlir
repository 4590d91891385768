// RUN: magweld-opt --split-input-file --fold-transpose %s | filecheck %s

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[OUT:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @right_operand(
// CHECK-SAME:      %[[A:.+]]: tensor<16x4xf32>, %[[B:.+]]: tensor<8x4xf32>, %[[C:.+]]: tensor<16x8xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[R:.+]] = linalg.matmul indexing_maps = [#[[LHS]], #[[RHS]], #[[OUT]]]
// CHECK-SAME:        {marker = "kept"}
// CHECK-SAME:        ins(%[[A]], %[[B]] : tensor<16x4xf32>, tensor<8x4xf32>)
// CHECK-SAME:        outs(%[[C]] : tensor<16x8xf32>)
// CHECK:         return %[[R]]
func.func @right_operand(%a: tensor<16x4xf32>, %b: tensor<8x4xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  %r = linalg.matmul {marker = "kept"} ins(%a, %t : tensor<16x4xf32>, tensor<4x8xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[OUT:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @both_operands(
// CHECK-SAME:      %[[A:.+]]: tensor<4x16xf32>, %[[B:.+]]: tensor<8x4xf32>,
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.matmul indexing_maps = [#[[LHS]], #[[RHS]], #[[OUT]]]
// CHECK-SAME:        ins(%[[A]], %[[B]] : tensor<4x16xf32>, tensor<8x4xf32>)
func.func @both_operands(%a: tensor<4x16xf32>, %b: tensor<8x4xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %e0 = tensor.empty() : tensor<16x4xf32>
  %t0 = linalg.transpose ins(%a : tensor<4x16xf32>) outs(%e0 : tensor<16x4xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<4x8xf32>
  %t1 = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%e1 : tensor<4x8xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%t0, %t1 : tensor<16x4xf32>, tensor<4x8xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// Two transposes in a row cancel out, and the plain form is printed again.

// CHECK-LABEL: func.func @twice(
// CHECK-SAME:      %[[A:.+]]: tensor<16x4xf32>, %[[B:.+]]: tensor<4x8xf32>,
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.matmul ins(%[[A]], %[[B]] : tensor<16x4xf32>, tensor<4x8xf32>)
func.func @twice(%a: tensor<16x4xf32>, %b: tensor<4x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %e0 = tensor.empty() : tensor<8x4xf32>
  %t0 = linalg.transpose ins(%b : tensor<4x8xf32>) outs(%e0 : tensor<8x4xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<4x8xf32>
  %t1 = linalg.transpose ins(%t0 : tensor<8x4xf32>) outs(%e1 : tensor<4x8xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%a, %t1 : tensor<16x4xf32>, tensor<4x8xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-LABEL: func.func @batch(
// CHECK-SAME:      %[[A:.+]]: tensor<2x4x16xf32>, %[[B:.+]]: tensor<2x8x4xf32>,
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.batch_matmul indexing_maps = [#[[LHS]], #[[RHS]], #{{.+}}]
// CHECK-SAME:        ins(%[[A]], %[[B]] : tensor<2x4x16xf32>, tensor<2x8x4xf32>)
func.func @batch(%a: tensor<2x4x16xf32>, %b: tensor<2x8x4xf32>, %c: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %e0 = tensor.empty() : tensor<2x16x4xf32>
  %t0 = linalg.transpose ins(%a : tensor<2x4x16xf32>) outs(%e0 : tensor<2x16x4xf32>) permutation = [0, 2, 1]
  %e1 = tensor.empty() : tensor<2x4x8xf32>
  %t1 = linalg.transpose ins(%b : tensor<2x8x4xf32>) outs(%e1 : tensor<2x4x8xf32>) permutation = [0, 2, 1]
  %r = linalg.batch_matmul ins(%t0, %t1 : tensor<2x16x4xf32>, tensor<2x4x8xf32>) outs(%c : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %r : tensor<2x16x8xf32>
}

// -----

// A batch dimension that moves is not expressible: the batch comes first in all maps.

// CHECK-LABEL: func.func @batch_moves(
// CHECK:         %[[T:.+]] = linalg.transpose
// CHECK:         linalg.batch_matmul ins(%{{.+}}, %[[T]] :
func.func @batch_moves(%a: tensor<2x16x4xf32>, %b: tensor<4x2x8xf32>, %c: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %e = tensor.empty() : tensor<2x4x8xf32>
  %t = linalg.transpose ins(%b : tensor<4x2x8xf32>) outs(%e : tensor<2x4x8xf32>) permutation = [1, 0, 2]
  %r = linalg.batch_matmul ins(%a, %t : tensor<2x16x4xf32>, tensor<2x4x8xf32>) outs(%c : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %r : tensor<2x16x8xf32>
}

// -----

// Another reader keeps the transpose; the product reads the source all the same.

// CHECK-LABEL: func.func @other_reader(
// CHECK-SAME:      %[[A:.+]]: tensor<16x4xf32>, %[[B:.+]]: tensor<8x4xf32>,
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[B]]
// CHECK:         %[[R:.+]] = linalg.matmul
// CHECK-SAME:        ins(%[[A]], %[[B]] :
// CHECK:         return %[[R]], %[[T]]
func.func @other_reader(%a: tensor<16x4xf32>, %b: tensor<8x4xf32>, %c: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%a, %t : tensor<16x4xf32>, tensor<4x8xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %r, %t : tensor<16x8xf32>, tensor<4x8xf32>
}

// -----

// A broadcast operand has a map of lower rank and is left alone.

// CHECK-LABEL: func.func @broadcast(
// CHECK:         %[[T:.+]] = linalg.transpose
// CHECK:         linalg.batch_matmul
// CHECK-SAME:        ins(%{{.+}}, %[[T]] :
#batch_a = affine_map<(b, m, n, k) -> (b, m, k)>
#shared_b = affine_map<(b, m, n, k) -> (k, n)>
#batch_c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @broadcast(%a: tensor<2x16x4xf32>, %b: tensor<8x4xf32>, %c: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  %r = linalg.batch_matmul indexing_maps = [#batch_a, #shared_b, #batch_c] ins(%a, %t : tensor<2x16x4xf32>, tensor<4x8xf32>) outs(%c : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %r : tensor<2x16x8xf32>
}

// -----

// On buffers the source may change between the transpose and the product.

// CHECK-LABEL: func.func @buffers(
// CHECK:         linalg.transpose
// CHECK:         linalg.matmul ins(%{{.+}}, %{{.+}} : memref<16x4xf32>, memref<4x8xf32>)
func.func @buffers(%a: memref<16x4xf32>, %b: memref<8x4xf32>, %t: memref<4x8xf32>, %c: memref<16x8xf32>) {
  linalg.transpose ins(%b : memref<8x4xf32>) outs(%t : memref<4x8xf32>) permutation = [1, 0]
  linalg.matmul ins(%a, %t : memref<16x4xf32>, memref<4x8xf32>) outs(%c : memref<16x8xf32>)
  return
}
