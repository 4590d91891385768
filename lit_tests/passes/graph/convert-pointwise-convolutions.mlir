// RUN: magweld-opt --convert-pointwise-convolutions %s | filecheck %s

// CHECK-DAG: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
// CHECK-DAG: #[[WEIGHTS:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[ROW_IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[ROW_WEIGHTS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[ROW_RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[OWN_WEIGHTS:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, d5)>
// CHECK-DAG: #[[OWN_IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d5, d3, d4)>

// Pixels keep their dimensions, weights are a matrix.
// CHECK-LABEL: func.func @pixels(
// CHECK-SAME:      %[[X:.+]]: tensor<2x8x6x10xf32>, %[[W:.+]]: tensor<16x8x1x1xf32>, %[[Y:.+]]: tensor<2x16x6x10xf32>)
// CHECK:         %[[M:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0], [1, 2, 3]] : tensor<16x8x1x1xf32> into tensor<16x8xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[IMAGE]], #[[WEIGHTS]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[X]], %[[M]] : tensor<2x8x6x10xf32>, tensor<16x8xf32>) outs(%[[Y]] :
// CHECK-NEXT:    ^bb0(%[[A:.+]]: f32, %[[B:.+]]: f32, %[[C:.+]]: f32):
// CHECK-NEXT:      %[[P:.+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:      %[[S:.+]] = arith.addf %[[C]], %[[P]] : f32
// CHECK-NEXT:      linalg.yield %[[S]] : f32
func.func @pixels(%x: tensor<2x8x6x10xf32>, %w: tensor<16x8x1x1xf32>, %y: tensor<2x16x6x10xf32>) -> tensor<2x16x6x10xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xf32>, tensor<16x8x1x1xf32>) outs(%y : tensor<2x16x6x10xf32>) -> tensor<2x16x6x10xf32>
  return %0 : tensor<2x16x6x10xf32>
}

// Halves are read as they are, and widened in the body.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:      %[[X:.+]]: tensor<2x8x12xf16>, %[[W:.+]]: tensor<16x8x1xf16>,
// CHECK:         %[[M:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0], [1, 2]]
// CHECK:         linalg.generic {indexing_maps = [#[[ROW_IMAGE]], #[[ROW_WEIGHTS]], #[[ROW_RESULT]]], {{.+}} ins(%[[X]], %[[M]] : tensor<2x8x12xf16>, tensor<16x8xf16>) outs(%{{.+}} : tensor<2x16x12xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.+]]: f16, %[[B:.+]]: f16, %{{.+}}: f32):
// CHECK-NEXT:      %[[WIDE:.+]] = arith.extf %[[A]] : f16 to f32
// CHECK-NEXT:      %[[OTHER:.+]] = arith.extf %[[B]] : f16 to f32
// CHECK-NEXT:      arith.mulf %[[WIDE]], %[[OTHER]] : f32
#row = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @halves(%x: tensor<2x8x12xf16>, %w: tensor<16x8x1xf16>, %y: tensor<2x16x12xf32>) -> tensor<2x16x12xf32> {
  %e = tensor.empty() : tensor<2x8x12xf32>
  %wide = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x8x12xf16>) outs(%e : tensor<2x8x12xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<2x8x12xf32>
  %f = tensor.empty() : tensor<16x8x1xf32>
  %weights = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<16x8x1xf16>) outs(%f : tensor<16x8x1xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<16x8x1xf32>
  %0 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%wide, %weights : tensor<2x8x12xf32>, tensor<16x8x1xf32>) outs(%y : tensor<2x16x12xf32>) -> tensor<2x16x12xf32>
  return %0 : tensor<2x16x12xf32>
}

// CHECK-LABEL: func.func @groups(
// CHECK-SAME:      %[[X:.+]]: tensor<2x3x4x6x10xf32>, %[[W:.+]]: tensor<3x5x4x1x1xf32>,
// CHECK:         %[[M:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0], [1], [2, 3, 4]] : {{.+}} into tensor<3x5x4xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[OWN_IMAGE]], #[[OWN_WEIGHTS]], #{{.+}}], {{.+}} ins(%[[X]], %[[M]] :
func.func @groups(%x: tensor<2x3x4x6x10xf32>, %w: tensor<3x5x4x1x1xf32>, %y: tensor<2x3x5x6x10xf32>) -> tensor<2x3x5x6x10xf32> {
  %0 = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x3x4x6x10xf32>, tensor<3x5x4x1x1xf32>) outs(%y : tensor<2x3x5x6x10xf32>) -> tensor<2x3x5x6x10xf32>
  return %0 : tensor<2x3x5x6x10xf32>
}

// A window of several points, and one that leaves pixels out, are no products.
// CHECK-LABEL: func.func @window(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @window(%x: tensor<2x8x6x10xf32>, %w: tensor<16x8x1x3xf32>, %y: tensor<2x16x6x8xf32>) -> tensor<2x16x6x8xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xf32>, tensor<16x8x1x3xf32>) outs(%y : tensor<2x16x6x8xf32>) -> tensor<2x16x6x8xf32>
  return %0 : tensor<2x16x6x8xf32>
}

// CHECK-LABEL: func.func @stride(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @stride(%x: tensor<2x8x6x10xf32>, %w: tensor<16x8x1x1xf32>, %y: tensor<2x16x3x5xf32>) -> tensor<2x16x3x5xf32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xf32>, tensor<16x8x1x1xf32>) outs(%y : tensor<2x16x3x5xf32>) -> tensor<2x16x3x5xf32>
  return %0 : tensor<2x16x3x5xf32>
}

// CHECK-LABEL: func.func @integers(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @integers(%x: tensor<2x8x6x10xi32>, %w: tensor<16x8x1x1xi32>, %y: tensor<2x16x6x10xi32>) -> tensor<2x16x6x10xi32> {
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x10xi32>, tensor<16x8x1x1xi32>) outs(%y : tensor<2x16x6x10xi32>) -> tensor<2x16x6x10xi32>
  return %0 : tensor<2x16x6x10xi32>
}

// Halves of channels that are whole steps and rows of instructions, and pixels that are
// no whole fragments, are left to products point by point.
// CHECK-LABEL: func.func @odd_halves(
// CHECK:         linalg.conv_2d_nchw_fchw
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @odd_halves(%x: tensor<1x16x7x7xf16>, %v: tensor<32x16x1x1xf16>, %y: tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32> {
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
