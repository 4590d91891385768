// RUN: magweld-opt --generalize-operations %s | filecheck %s

// A kernel whose operations are generic or on windows is left alone, and so is what is no
// kernel.
//
// CHECK-LABEL: func.func @kernel(
// CHECK:         linalg.generic
// CHECK:           math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.depthwise_conv_2d_nchw_chw
// CHECK-NOT:     linalg.generic
// CHECK:         return
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @kernel(%x: tensor<1x2x8x8xf32>, %w: tensor<2x3x3xf32>, %o: tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32> attributes {tile_graph.kernel} {
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%x : tensor<1x2x8x8xf32>) {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    linalg.yield %e : f32
  } -> tensor<1x2x8x8xf32>
  %1 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%0, %w : tensor<1x2x8x8xf32>, tensor<2x3x3xf32>) outs(%o : tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  return %1 : tensor<1x2x6x6xf32>
}

// CHECK-LABEL: func.func @host(
// CHECK:         linalg.fill
// CHECK:         linalg.exp
// CHECK:         return
func.func @host(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.exp ins(%f : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
