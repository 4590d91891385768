// RUN: magweld-opt --hoist-slice %s | filecheck %s

// Queries, keys and values as one tensor: each is read where it lies.
//
// CHECK-LABEL: func.func @unbind(
// CHECK-SAME:      %[[X:.+]]: tensor<8x64x3x32xf32>)
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[X]][0, 0, 1, 0] [8, 64, 1, 32] [1, 1, 1, 1]
// CHECK-SAME:        tensor<8x64x3x32xf32> to tensor<8x64x32xf32>
// CHECK-NEXT:    return %[[S]]
func.func @unbind(%x: tensor<8x64x3x32xf32>) -> tensor<8x64x32xf32> {
  %e = tensor.empty() : tensor<3x8x64x32xf32>
  %t = linalg.transpose ins(%x : tensor<8x64x3x32xf32>)
      outs(%e : tensor<3x8x64x32xf32>) permutation = [2, 0, 1, 3]
  %s = tensor.extract_slice %t[1, 0, 0, 0] [1, 8, 64, 32] [1, 1, 1, 1]
      : tensor<3x8x64x32xf32> to tensor<1x8x64x32xf32>
  %q = tensor.collapse_shape %s [[0, 1], [2], [3]]
      : tensor<1x8x64x32xf32> into tensor<8x64x32xf32>
  return %q : tensor<8x64x32xf32>
}

// What is left of the transpose stays, of the slice alone.
//
// CHECK-LABEL: func.func @still_transposed(
// CHECK-SAME:      %[[X:.+]]: tensor<6x4x5xf32>)
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[X]][2, 1, 0] [3, 2, 1] [1, 1, 1]
// CHECK-SAME:        tensor<6x4x5xf32> to tensor<3x2xf32>
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[S]] : tensor<3x2xf32>)
// CHECK-SAME:        permutation = [1, 0]
// CHECK:         return %[[T]]
func.func @still_transposed(%x: tensor<6x4x5xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<5x4x6xf32>
  %t = linalg.transpose ins(%x : tensor<6x4x5xf32>)
      outs(%e : tensor<5x4x6xf32>) permutation = [2, 1, 0]
  %s = tensor.extract_slice %t[0, 1, 2] [1, 2, 3] [1, 1, 1]
      : tensor<5x4x6xf32> to tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}

// Every other row, and a reshape that merges two real dimensions, are left alone.
//
// CHECK-LABEL: func.func @left_alone(
// CHECK:         linalg.transpose
// CHECK:         tensor.extract_slice %{{.+}}[0, 0] [2, 6] [2, 1]
// CHECK:         %[[S:.+]] = tensor.extract_slice %{{.+}}[1, 0, 0] [2, 2, 3] [1, 1, 1]
// CHECK-SAME:        to tensor<2x2x3xf32>
// CHECK:         tensor.collapse_shape %[[S]]
func.func @left_alone(%x: tensor<6x4xf32>, %y: tensor<4x2x3xf32>)
    -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%x : tensor<6x4xf32>)
      outs(%e : tensor<4x6xf32>) permutation = [1, 0]
  %s = tensor.extract_slice %t[0, 0] [2, 6] [2, 1]
      : tensor<4x6xf32> to tensor<2x6xf32>
  %r = tensor.extract_slice %y[1, 0, 0] [2, 2, 3] [1, 1, 1]
      : tensor<4x2x3xf32> to tensor<2x2x3xf32>
  %c = tensor.collapse_shape %r [[0], [1, 2]]
      : tensor<2x2x3xf32> into tensor<2x6xf32>
  return %s, %c : tensor<2x6xf32>, tensor<2x6xf32>
}

// A slice beside what was written reads the tensor as it was before, one inside of it
// what was written.
//
// CHECK-LABEL: func.func @past_insert(
// CHECK-SAME:      %[[X:.+]]: tensor<4x8xf32>, %[[P:.+]]: tensor<4x3xf32>)
// CHECK-DAG:     %[[BESIDE:.+]] = tensor.extract_slice %[[X]][0, 5] [4, 2] [1, 1]
// CHECK-DAG:     %[[INSIDE:.+]] = tensor.extract_slice %[[P]][1, 1] [2, 2] [1, 1]
// CHECK-NOT:     tensor.insert_slice
// CHECK:         return %[[BESIDE]], %[[INSIDE]]
func.func @past_insert(%x: tensor<4x8xf32>, %p: tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<2x2xf32>) {
  %i = tensor.insert_slice %p into %x[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %a = tensor.extract_slice %i[0, 5] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %b = tensor.extract_slice %i[1, 3] [2, 2] [1, 1] : tensor<4x8xf32> to tensor<2x2xf32>
  return %a, %b : tensor<4x2xf32>, tensor<2x2xf32>
}

// A slice of both stays.
//
// CHECK-LABEL: func.func @across_insert(
// CHECK:         %[[I:.+]] = tensor.insert_slice
// CHECK:         tensor.extract_slice %[[I]][0, 4] [4, 2] [1, 1]
func.func @across_insert(%x: tensor<4x8xf32>, %p: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %i = tensor.insert_slice %p into %x[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %a = tensor.extract_slice %i[0, 4] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  return %a : tensor<4x2xf32>
}
