// RUN: magweld-opt --generalize-operations %s | filecheck %s

// CHECK-LABEL: func.func @mixed(
// CHECK-NOT:     linalg.exp
// CHECK:         linalg.generic
// CHECK:           math.exp
// CHECK:         linalg.conv_2d_nchw_fchw
// CHECK-NOT:     linalg.fill
// CHECK:         linalg.pooling_nchw_max
func.func @mixed(%x: tensor<1x2x8x8xf32>, %w: tensor<2x2x3x3xf32>, %o: tensor<1x2x6x6xf32>, %p: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> attributes {tile_graph.kernel} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %0 = linalg.exp ins(%x : tensor<1x2x8x8xf32>) outs(%e : tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%0, %w : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%o : tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = linalg.fill ins(%low : f32) outs(%p : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%1, %window : tensor<1x2x6x6xf32>, tensor<2x2xf32>) outs(%2 : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %3 : tensor<1x2x3x3xf32>
}

// What is no kernel keeps operations of the same names.
// CHECK-LABEL: func.func @host(
// CHECK:         linalg.exp
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @host(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Each kernel has operations of its own.
// CHECK-LABEL: func.func @another(
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.tanh
// CHECK:         return
func.func @another(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tile_graph.kernel} {
  %0 = linalg.tanh ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @last(
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.exp
// CHECK:         return
func.func @last(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
