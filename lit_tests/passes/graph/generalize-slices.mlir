// RUN: magweld-opt --generalize-slices %s | filecheck %s

// A slice in another shape is a tensor of its own, which is copied by elements; what reads
// elements of it as well reads the copy.
// CHECK-LABEL: func.func @chunk(
// CHECK-SAME:      %[[X:.+]]: tensor<1x8x6xf32>)
// CHECK:         %[[S:.+]] = tensor.extract_slice %[[X]][0, 4, 0] [1, 4, 6] [1, 1, 1]
// CHECK:         %[[E:.+]] = tensor.empty() : tensor<1x4x6xf32>
// CHECK:         %[[C:.+]] = linalg.generic {{{.+}} iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[S]] : tensor<1x4x6xf32>) outs(%[[E]] : tensor<1x4x6xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:      linalg.yield %[[IN]] : f32
// CHECK:         tensor.expand_shape %[[C]]
// CHECK:         linalg.exp ins(%[[C]] :
func.func @chunk(%x: tensor<1x8x6xf32>) -> (tensor<1x4x6x1xf32>, tensor<1x4x6xf32>) {
  %s = tensor.extract_slice %x[0, 4, 0] [1, 4, 6] [1, 1, 1] : tensor<1x8x6xf32> to tensor<1x4x6xf32>
  %v = tensor.expand_shape %s [[0], [1], [2, 3]] output_shape [1, 4, 6, 1] : tensor<1x4x6xf32> into tensor<1x4x6x1xf32>
  %e = tensor.empty() : tensor<1x4x6xf32>
  %r = linalg.exp ins(%s : tensor<1x4x6xf32>) outs(%e : tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  return %v, %r : tensor<1x4x6x1xf32>, tensor<1x4x6xf32>
}

// Operators on elements read slices in place. An empty slice has nothing to copy.
// CHECK-LABEL: func.func @in_place(
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @in_place(%x: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<0x6xf32>) {
  %s = tensor.extract_slice %x[4, 0] [4, 6] [1, 1] : tensor<8x6xf32> to tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.exp ins(%s : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %n = tensor.extract_slice %x[0, 0] [0, 6] [1, 1] : tensor<8x6xf32> to tensor<0x6xf32>
  return %r, %n : tensor<4x6xf32>, tensor<0x6xf32>
}
