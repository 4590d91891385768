// RUN: magweld-opt --narrow-windows %s | filecheck %s

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// The image is padded before it is widened, which is in the product then.
// CHECK-LABEL: func.func @bordered(
// CHECK-SAME:      %[[X:.+]]: tensor<1x16x6x6xf16>, %[[W:.+]]: tensor<32x16x3x3xf16>,
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f16
// CHECK:         %[[P:.+]] = tensor.pad %[[X]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:           tensor.yield %[[ZERO]] : f16
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%[[P]], %[[W]] : tensor<1x16x8x8xf16>, tensor<32x16x3x3xf16>) outs(%{{.+}} : tensor<1x32x6x6xf32>)
func.func @bordered(%x: tensor<1x16x6x6xf16>, %w: tensor<32x16x3x3xf16>, %y: tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x6x6xf16>) outs(%e : tensor<1x16x6x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x16x6x6xf32>
  %f = tensor.empty() : tensor<32x16x3x3xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<32x16x3x3xf16>) outs(%f : tensor<32x16x3x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x16x3x3xf32>
  %p = tensor.pad %wide low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x16x6x6xf32> to tensor<1x16x8x8xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %weights : tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) outs(%y : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
  return %0 : tensor<1x32x6x6xf32>
}

// Eight channels are no step of an instruction.
// CHECK-LABEL: func.func @few_channels(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x8x6x6xf32>, tensor<32x8x3x3xf32>)
func.func @few_channels(%x: tensor<1x8x6x6xf16>, %w: tensor<32x8x3x3xf16>, %y: tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32> {
  %e = tensor.empty() : tensor<1x8x6x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x8x6x6xf16>) outs(%e : tensor<1x8x6x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x8x6x6xf32>
  %f = tensor.empty() : tensor<32x8x3x3xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<32x8x3x3xf16>) outs(%f : tensor<32x8x3x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x8x3x3xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%wide, %weights : tensor<1x8x6x6xf32>, tensor<32x8x3x3xf32>) outs(%y : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
  return %0 : tensor<1x32x4x4xf32>
}

// Pixels of single points that are whole fragments are a product as they are.
// CHECK-LABEL: func.func @points(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x16x4x6xf32>, tensor<32x16x1x1xf32>)
func.func @points(%x: tensor<1x16x4x6xf16>, %v: tensor<32x16x1x1xf16>, %y: tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32> {
  %e = tensor.empty() : tensor<1x16x4x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x4x6xf16>) outs(%e : tensor<1x16x4x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x16x4x6xf32>
  %f = tensor.empty() : tensor<32x16x1x1xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<32x16x1x1xf16>) outs(%f : tensor<32x16x1x1xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x16x1x1xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%wide, %weights : tensor<1x16x4x6xf32>, tensor<32x16x1x1xf32>) outs(%y : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
  return %0 : tensor<1x32x4x6xf32>
}

// Others are products of rows with something behind their end.
// CHECK-LABEL: func.func @odd_points(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x16x7x7xf16>, tensor<32x16x1x1xf16>)
func.func @odd_points(%x: tensor<1x16x7x7xf16>, %v: tensor<32x16x1x1xf16>, %y: tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32> {
  %e = tensor.empty() : tensor<1x16x7x7xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x7x7xf16>) outs(%e : tensor<1x16x7x7xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x16x7x7xf32>
  %f = tensor.empty() : tensor<32x16x1x1xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<32x16x1x1xf16>) outs(%f : tensor<32x16x1x1xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x16x1x1xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%wide, %weights : tensor<1x16x7x7xf32>, tensor<32x16x1x1xf32>) outs(%y : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  return %0 : tensor<1x32x7x7xf32>
}

// Weights of f32 stay as they are.
// CHECK-LABEL: func.func @wide_weights(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x16x6x6xf32>, tensor<32x16x3x3xf32>)
func.func @wide_weights(%x: tensor<1x16x6x6xf16>, %weights: tensor<32x16x3x3xf32>, %y: tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32> {
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x6x6xf16>) outs(%e : tensor<1x16x6x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x16x6x6xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%wide, %weights : tensor<1x16x6x6xf32>, tensor<32x16x3x3xf32>) outs(%y : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
  return %0 : tensor<1x32x4x4xf32>
}

// A border of ones is none of zeros.
// CHECK-LABEL: func.func @ones(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>)
func.func @ones(%x: tensor<1x16x6x6xf16>, %w: tensor<32x16x3x3xf16>, %y: tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x6x6xf16>) outs(%e : tensor<1x16x6x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x16x6x6xf32>
  %f = tensor.empty() : tensor<32x16x3x3xf32>
  %weights = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<32x16x3x3xf16>) outs(%f : tensor<32x16x3x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x16x3x3xf32>
  %p = tensor.pad %wide low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %one : f32
  } : tensor<1x16x6x6xf32> to tensor<1x16x8x8xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %weights : tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) outs(%y : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
  return %0 : tensor<1x32x6x6xf32>
}
