// RUN: magweld-opt --hoist-stride %s | filecheck %s

// CHECK: #[[READ:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 * 2, d3 * 3)>
// CHECK-LABEL: func.func @points(
// CHECK-SAME:      %[[X:.+]]: tensor<2x8x6x10xf32>, %[[W:.+]]: tensor<16x8x1x1xf32>, %[[Y:.+]]: tensor<2x16x3x4xf32>)
// CHECK:         %[[P:.+]] = linalg.generic {indexing_maps = [#[[READ]], {{.+}}iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%[[X]] : tensor<2x8x6x10xf32>) outs(%{{.+}} : tensor<2x8x3x4xf32>)
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%[[P]], %[[W]] : tensor<2x8x3x4xf32>, tensor<16x8x1x1xf32>) outs(%[[Y]] :
func.func @points(%x: tensor<2x8x6x10xf32>, %w: tensor<16x8x1x1xf32>, %y: tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<[2, 3]> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xf32>, tensor<16x8x1x1xf32>) outs(%y : tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32>
  return %0 : tensor<2x16x3x4xf32>
}

// A window of several points reads what is between.
// CHECK-LABEL: func.func @window(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @window(%x: tensor<2x8x7x9xf32>, %w: tensor<16x8x3x3xf32>, %y: tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x8x7x9xf32>, tensor<16x8x3x3xf32>) outs(%y : tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32>
  return %0 : tensor<2x16x3x4xf32>
}

// CHECK-LABEL: func.func @every_point(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @every_point(%x: tensor<2x8x6x10xf32>, %w: tensor<16x8x1x1xf32>, %y: tensor<2x16x6x10xf32>) -> tensor<2x16x6x10xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xf32>, tensor<16x8x1x1xf32>) outs(%y : tensor<2x16x6x10xf32>) -> tensor<2x16x6x10xf32>
  return %0 : tensor<2x16x6x10xf32>
}
