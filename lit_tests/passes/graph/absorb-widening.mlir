// RUN: magweld-opt --absorb-widening %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#image = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#line = affine_map<(a, b, c) -> (a, b, c)>

// CHECK-LABEL: func.func @both(
// CHECK-SAME:      %[[X:.+]]: tensor<4x8xf16>, %[[W:.+]]: tensor<8x16xbf16>, %[[C:.+]]: tensor<4x16xf32>
// CHECK:         %[[R:.+]] = linalg.matmul ins(%[[X]], %[[W]] : tensor<4x8xf16>, tensor<8x16xbf16>) outs(%[[C]] : tensor<4x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT:    return %[[R]]
func.func @both(%x: tensor<4x8xf16>, %w: tensor<8x16xbf16>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e0 = tensor.empty() : tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf16>) outs(%e0 : tensor<4x8xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x16xbf16>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  %r = linalg.matmul ins(%0, %1 : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// What is rounded on the way, in another order, or no half stays.
// CHECK-LABEL: func.func @near_misses(
// CHECK:         %[[A:.+]] = linalg.generic
// CHECK:         %[[B:.+]] = linalg.generic
// CHECK:         linalg.matmul ins(%[[A]], %[[B]] : tensor<8x8xf32>, tensor<8x8xf32>)
func.func @near_misses(%x: tensor<8x8xf32>, %w: tensor<8x8xf16>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e0 = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e0 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %u: f32):
    %t = arith.truncf %a : f32 to f16
    %n = arith.extf %t : f16 to f32
    linalg.yield %n : f32
  } -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x8xf16>) outs(%e0 : tensor<8x8xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<8x8xf32>
  %r = linalg.matmul ins(%0, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// A window of one point is a product of matrices.
// CHECK-LABEL: func.func @points(
// CHECK-SAME:      %[[X:.+]]: tensor<1x4x9x9xbf16>, %[[W:.+]]: tensor<8x4x1x1xbf16>
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%[[X]], %[[W]] : tensor<1x4x9x9xbf16>, tensor<8x4x1x1xbf16>) outs(%{{.+}} : tensor<1x8x5x5xf32>)
func.func @points(%x: tensor<1x4x9x9xbf16>, %w: tensor<8x4x1x1xbf16>, %c: tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32> {
  %e0 = tensor.empty() : tensor<1x4x9x9xf32>
  %e1 = tensor.empty() : tensor<8x4x1x1xf32>
  %0 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x9x9xbf16>) outs(%e0 : tensor<1x4x9x9xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<1x4x9x9xf32>
  %1 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<8x4x1x1xbf16>) outs(%e1 : tensor<8x4x1x1xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<8x4x1x1xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%0, %1 : tensor<1x4x9x9xf32>, tensor<8x4x1x1xf32>) outs(%c : tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  return %r : tensor<1x8x5x5xf32>
}

// CHECK-LABEL: func.func @points_of_a_line(
// CHECK:         linalg.conv_1d_ncw_fcw ins(%{{.+}}, %{{.+}} : tensor<1x4x9xbf16>, tensor<8x4x1xbf16>) outs(%{{.+}} : tensor<1x8x9xf32>)
func.func @points_of_a_line(%x: tensor<1x4x9xbf16>, %w: tensor<8x4x1xbf16>, %c: tensor<1x8x9xf32>) -> tensor<1x8x9xf32> {
  %e0 = tensor.empty() : tensor<1x4x9xf32>
  %e1 = tensor.empty() : tensor<8x4x1xf32>
  %0 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x9xbf16>) outs(%e0 : tensor<1x4x9xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<1x4x9xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<8x4x1xbf16>) outs(%e1 : tensor<8x4x1xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<8x4x1xf32>
  %r = linalg.conv_1d_ncw_fcw ins(%0, %1 : tensor<1x4x9xf32>, tensor<8x4x1xf32>) outs(%c : tensor<1x8x9xf32>) -> tensor<1x8x9xf32>
  return %r : tensor<1x8x9xf32>
}

// There is no instruction for pairs of f16.
// CHECK-LABEL: func.func @points_of_f16(
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%{{.+}}, %{{.+}} : tensor<1x4x9x9xf32>, tensor<8x4x1x1xf32>)
func.func @points_of_f16(%x: tensor<1x4x9x9xf16>, %w: tensor<8x4x1x1xf16>, %c: tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32> {
  %e0 = tensor.empty() : tensor<1x4x9x9xf32>
  %e1 = tensor.empty() : tensor<8x4x1x1xf32>
  %0 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x9x9xf16>) outs(%e0 : tensor<1x4x9x9xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<1x4x9x9xf32>
  %1 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<8x4x1x1xf16>) outs(%e1 : tensor<8x4x1x1xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<8x4x1x1xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%0, %1 : tensor<1x4x9x9xf32>, tensor<8x4x1x1xf32>) outs(%c : tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  return %r : tensor<1x8x5x5xf32>
}

// Larger windows read each pixel more than once: it is widened before.
// CHECK-LABEL: func.func @window(
// CHECK:         %[[WIDE:.+]] = linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw ins(%[[WIDE]], %{{.+}} : tensor<1x4x9x9xf32>, tensor<8x4x3x3xf32>)
func.func @window(%x: tensor<1x4x9x9xbf16>, %w: tensor<8x4x3x3xf32>, %c: tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32> {
  %e0 = tensor.empty() : tensor<1x4x9x9xf32>
  %0 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x9x9xbf16>) outs(%e0 : tensor<1x4x9x9xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<1x4x9x9xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%0, %w : tensor<1x4x9x9xf32>, tensor<8x4x3x3xf32>) outs(%c : tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32>
  return %r : tensor<1x8x7x7xf32>
}
