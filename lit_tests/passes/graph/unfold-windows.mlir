// RUN: magweld-opt --unfold-windows %s | filecheck %s

// CHECK: #[[READ:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4 * 2 + d2, d5 * 3 + d3 * 2)>
// CHECK-LABEL: func.func @windows(
// CHECK-SAME:      %[[X:.+]]: tensor<2x32x15x25xf32>, %[[W:.+]]: tensor<64x32x3x3xf32>, %[[Y:.+]]: tensor<2x64x7x7xf32>)
// CHECK:         %[[U:.+]] = linalg.generic {indexing_maps = [#[[READ]], {{.+}}} ins(%[[X]] : tensor<2x32x15x25xf32>) outs(%{{.+}} : tensor<2x32x3x3x7x7xf32>)
// CHECK:         %[[P:.+]] = tensor.collapse_shape %[[U]] {{\[}}[0], [1, 2, 3], [4], [5]] : tensor<2x32x3x3x7x7xf32> into tensor<2x288x7x7xf32>
// CHECK:         %[[F:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0], [1, 2, 3]] : tensor<64x32x3x3xf32> into tensor<64x288xf32>
// CHECK:         %[[V:.+]] = tensor.expand_shape %[[F]] {{\[}}[0], [1, 2, 3]] output_shape [64, 288, 1, 1]
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%[[P]], %[[V]] : tensor<2x288x7x7xf32>, tensor<64x288x1x1xf32>) outs(%[[Y]] :
func.func @windows(%x: tensor<2x32x15x25xf32>, %w: tensor<64x32x3x3xf32>, %y: tensor<2x64x7x7xf32>) -> tensor<2x64x7x7xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 2]> : vector<2xi64>, strides = dense<[2, 3]> : vector<2xi64>} ins(%x, %w : tensor<2x32x15x25xf32>, tensor<64x32x3x3xf32>) outs(%y : tensor<2x64x7x7xf32>) -> tensor<2x64x7x7xf32>
  return %0 : tensor<2x64x7x7xf32>
}

// Windows at every point take fewer products.
// CHECK-LABEL: func.func @every_point(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @every_point(%x: tensor<1x32x9x9xf32>, %w: tensor<64x32x3x3xf32>, %y: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x32x9x9xf32>, tensor<64x32x3x3xf32>) outs(%y : tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %0 : tensor<1x64x7x7xf32>
}

// CHECK-LABEL: func.func @single_points(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @single_points(%x: tensor<1x32x13x13xf32>, %w: tensor<64x32x1x1xf32>, %y: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x32x13x13xf32>, tensor<64x32x1x1xf32>) outs(%y : tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %0 : tensor<1x64x7x7xf32>
}

// Generated code is fast for few channels as they are.
// CHECK-LABEL: func.func @few_channels(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @few_channels(%x: tensor<1x31x15x15xf32>, %w: tensor<64x31x3x3xf32>, %y: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x31x15x15xf32>, tensor<64x31x3x3xf32>) outs(%y : tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %0 : tensor<1x64x7x7xf32>
}

// 4.1 MiB of windows leave the caches.
// CHECK-LABEL: func.func @many_pixels(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @many_pixels(%x: tensor<1x32x123x123xf32>, %w: tensor<64x32x3x3xf32>, %y: tensor<1x64x61x61xf32>) -> tensor<1x64x61x61xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x32x123x123xf32>, tensor<64x32x3x3xf32>) outs(%y : tensor<1x64x61x61xf32>) -> tensor<1x64x61x61xf32>
  return %0 : tensor<1x64x61x61xf32>
}

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// Halves are widened in the product.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:      %[[X:.+]]: tensor<1x32x13x13xbf16>, %[[W:.+]]: tensor<64x32x3x3xbf16>,
// CHECK:         %[[P:.+]] = tensor.pad %[[X]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:         linalg.generic {{.+}} ins(%[[P]] : tensor<1x32x15x15xbf16>) outs(%{{.+}} : tensor<1x32x3x3x7x7xbf16>)
// CHECK:         tensor.collapse_shape %[[W]]
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x288x7x7xbf16>, tensor<64x288x1x1xbf16>) outs(%{{.+}} : tensor<1x64x7x7xf32>)
func.func @halves(%x: tensor<1x32x13x13xbf16>, %w: tensor<64x32x3x3xbf16>, %y: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x13x13xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x32x13x13xbf16>) outs(%e : tensor<1x32x13x13xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x32x13x13xf32>
  %f = tensor.empty() : tensor<64x32x3x3xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<64x32x3x3xbf16>) outs(%f : tensor<64x32x3x3xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<64x32x3x3xf32>
  %p = tensor.pad %wide low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x32x13x13xf32> to tensor<1x32x15x15xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%p, %weights : tensor<1x32x15x15xf32>, tensor<64x32x3x3xf32>) outs(%y : tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %0 : tensor<1x64x7x7xf32>
}

// There are no instructions for sums of f64.
// CHECK-LABEL: func.func @doubles(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @doubles(%x: tensor<1x32x15x15xf64>, %w: tensor<64x32x3x3xf64>, %y: tensor<1x64x7x7xf64>) -> tensor<1x64x7x7xf64> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x32x15x15xf64>, tensor<64x32x3x3xf64>) outs(%y : tensor<1x64x7x7xf64>) -> tensor<1x64x7x7xf64>
  return %0 : tensor<1x64x7x7xf64>
}

// CHECK-LABEL: func.func @any_size(
// CHECK-NOT:     linalg.generic
// CHECK:         strides = dense<2>
func.func @any_size(%x: tensor<1x32x?x15xf32>, %w: tensor<64x32x3x3xf32>, %y: tensor<1x64x?x7xf32>) -> tensor<1x64x?x7xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x32x?x15xf32>, tensor<64x32x3x3xf32>) outs(%y : tensor<1x64x?x7xf32>) -> tensor<1x64x?x7xf32>
  return %0 : tensor<1x64x?x7xf32>
}
