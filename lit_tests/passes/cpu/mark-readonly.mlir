// RUN: magweld-opt --mark-readonly %s | filecheck %s

// A slice is inserted into what may be an argument of the user's: not in its place.
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME:      %{{[^:]+}}: tensor<4xf32> {bufferization.writable = false}, %{{[^:]+}}: tensor<8xf32> {bufferization.writable = false}, %{{[^:]+}}: tensor<8xf32>)
func.func @kernel(%part: tensor<4xf32>, %x: tensor<8xf32>, %out: tensor<8xf32>)
    -> tensor<8xf32> attributes {tile_graph.kernel} {
  %y = tensor.insert_slice %part into %x[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %y : tensor<8xf32>
}

// What reads nothing needs no mark.
// CHECK-LABEL: func.func @reads_nothing(
// CHECK-SAME:      %{{[^:]+}}: tensor<8xf32>) -> tensor<8xf32>
func.func @reads_nothing(%out: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.kernel} {
  return %out : tensor<8xf32>
}

// What is no kernel is left alone.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      %{{[^:]+}}: tensor<8xf32>)
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
