// depthwise-pointwise: a window before a product.
// At least 154144064 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @depthwise_pointwise(
// V100: }) {footprint = 90496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.18[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00208[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 4, 56]>, traffic_after = 154144064 : i64, traffic_before = 1387300160 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @depthwise_pointwise(
// H100: }) {footprint = 180608 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.42[0-9]*E-4}} : f64{{.*}}seconds_apart = {{5\.80[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[2, 16, 4, 56]>, traffic_after = 154144064 : i64, traffic_before = 1387269440 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map2 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @depthwise_pointwise(%arg0: tensor<64x32x112x112xf32>, %arg1: tensor<32x1x3x3xf32>, %arg2: tensor<32xf32>, %arg3: tensor<16x32x1x1xf32>, %arg4: tensor<16xf32>) -> tensor<64x16x112x112xf32> {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = arith.constant dense<6.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst_1 : f32
    } : tensor<64x32x112x112xf32> to tensor<64x32x114x114xf32>
    %0 = tensor.empty() : tensor<64x32x112x112xf32>
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<64x32x112x112xf32>) -> tensor<64x32x112x112xf32>
    %collapsed = tensor.collapse_shape %arg1 [[0, 1], [2], [3]] : tensor<32x1x3x3xf32> into tensor<32x3x3xf32>
    %2 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %collapsed : tensor<64x32x114x114xf32>, tensor<32x3x3xf32>) outs(%1 : tensor<64x32x112x112xf32>) -> tensor<64x32x112x112xf32>
    %expanded = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<64x32x112x112xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x112x112xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %13 = arith.addf %in, %in_3 : f32
      linalg.yield %13 : f32
    } -> tensor<64x32x112x112xf32>
    %4 = tensor.empty() : tensor<64x32x112x112xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %cst : tensor<64x32x112x112xf32>, tensor<f32>) outs(%4 : tensor<64x32x112x112xi1>) {
    ^bb0(%in: f32, %in_3: f32, %out: i1):
      %13 = arith.cmpf olt, %in, %in_3 : f32
      linalg.yield %13 : i1
    } -> tensor<64x32x112x112xi1>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %cst, %3 : tensor<64x32x112x112xi1>, tensor<f32>, tensor<64x32x112x112xf32>) outs(%0 : tensor<64x32x112x112xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %13 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %13 : f32
    } -> tensor<64x32x112x112xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %cst_0 : tensor<64x32x112x112xf32>, tensor<f32>) outs(%4 : tensor<64x32x112x112xi1>) {
    ^bb0(%in: f32, %in_3: f32, %out: i1):
      %13 = arith.cmpf ogt, %in, %in_3 : f32
      linalg.yield %13 : i1
    } -> tensor<64x32x112x112xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %cst_0, %6 : tensor<64x32x112x112xi1>, tensor<f32>, tensor<64x32x112x112xf32>) outs(%0 : tensor<64x32x112x112xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %13 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %13 : f32
    } -> tensor<64x32x112x112xf32>
    %9 = tensor.empty() : tensor<64x16x112x112xf32>
    %10 = linalg.fill ins(%cst_1 : f32) outs(%9 : tensor<64x16x112x112xf32>) -> tensor<64x16x112x112xf32>
    %11 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%8, %arg3 : tensor<64x32x112x112xf32>, tensor<16x32x1x1xf32>) outs(%10 : tensor<64x16x112x112xf32>) -> tensor<64x16x112x112xf32>
    %expanded_2 = tensor.expand_shape %arg4 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %expanded_2 : tensor<64x16x112x112xf32>, tensor<16x1x1xf32>) outs(%9 : tensor<64x16x112x112xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %13 = arith.addf %in, %in_3 : f32
      linalg.yield %13 : f32
    } -> tensor<64x16x112x112xf32>
    return %12 : tensor<64x16x112x112xf32>
  }
}
