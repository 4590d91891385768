// inverted-residual: a halo between two products.
// At least 38569248 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @inverted_residual(
// V100: }) {footprint = 72448 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.91[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00362[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 8, 8, 56]>, traffic_after = 134893248 : i64, traffic_before = 2447003328 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 221568 bytes needed in shared, 98304 there; other tiles: recompute, 1.85 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 88320 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.99[0-9]*E-4}} : f64{{.*}}seconds_apart = {{4\.12[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 24, 8, 56]>, traffic_after = 154154592 : i64, traffic_before = 231224928 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @inverted_residual(
// H100: }) {copy_stages = 4 : i64, footprint = 221568 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.39[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00112[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 24, 8, 8]>, traffic_after = 38569248 : i64, traffic_before = 2678228256 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map2 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @inverted_residual(%arg0: tensor<64x24x56x56xf32>, %arg1: tensor<144x24x1x1xf32>, %arg2: tensor<144xf32>, %arg3: tensor<144x1x3x3xf32>, %arg4: tensor<144xf32>, %arg5: tensor<24x144x1x1xf32>, %arg6: tensor<24xf32>) -> tensor<64x24x56x56xf32> {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = arith.constant dense<6.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x144x56x56xf32>
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<64x144x56x56xf32>) -> tensor<64x144x56x56xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%arg0, %arg1 : tensor<64x24x56x56xf32>, tensor<144x24x1x1xf32>) outs(%1 : tensor<64x144x56x56xf32>) -> tensor<64x144x56x56xf32>
    %expanded = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [144, 1, 1] : tensor<144xf32> into tensor<144x1x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<64x144x56x56xf32>, tensor<144x1x1xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.addf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %4 = tensor.empty() : tensor<64x144x56x56xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %cst : tensor<64x144x56x56xf32>, tensor<f32>) outs(%4 : tensor<64x144x56x56xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %20 = arith.cmpf olt, %in, %in_4 : f32
      linalg.yield %20 : i1
    } -> tensor<64x144x56x56xi1>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %cst, %3 : tensor<64x144x56x56xi1>, tensor<f32>, tensor<64x144x56x56xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %20 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %cst_0 : tensor<64x144x56x56xf32>, tensor<f32>) outs(%4 : tensor<64x144x56x56xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %20 = arith.cmpf ogt, %in, %in_4 : f32
      linalg.yield %20 : i1
    } -> tensor<64x144x56x56xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %cst_0, %6 : tensor<64x144x56x56xi1>, tensor<f32>, tensor<64x144x56x56xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %20 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %padded = tensor.pad %8 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst_1 : f32
    } : tensor<64x144x56x56xf32> to tensor<64x144x58x58xf32>
    %collapsed = tensor.collapse_shape %arg3 [[0, 1], [2], [3]] : tensor<144x1x3x3xf32> into tensor<144x3x3xf32>
    %9 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %collapsed : tensor<64x144x58x58xf32>, tensor<144x3x3xf32>) outs(%1 : tensor<64x144x56x56xf32>) -> tensor<64x144x56x56xf32>
    %expanded_2 = tensor.expand_shape %arg4 [[0, 1, 2]] output_shape [144, 1, 1] : tensor<144xf32> into tensor<144x1x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %expanded_2 : tensor<64x144x56x56xf32>, tensor<144x1x1xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.addf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %cst : tensor<64x144x56x56xf32>, tensor<f32>) outs(%4 : tensor<64x144x56x56xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %20 = arith.cmpf olt, %in, %in_4 : f32
      linalg.yield %20 : i1
    } -> tensor<64x144x56x56xi1>
    %12 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %cst, %10 : tensor<64x144x56x56xi1>, tensor<f32>, tensor<64x144x56x56xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %20 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %cst_0 : tensor<64x144x56x56xf32>, tensor<f32>) outs(%4 : tensor<64x144x56x56xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %20 = arith.cmpf ogt, %in, %in_4 : f32
      linalg.yield %20 : i1
    } -> tensor<64x144x56x56xi1>
    %14 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %cst_0, %12 : tensor<64x144x56x56xi1>, tensor<f32>, tensor<64x144x56x56xf32>) outs(%0 : tensor<64x144x56x56xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %20 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %20 : f32
    } -> tensor<64x144x56x56xf32>
    %15 = tensor.empty() : tensor<64x24x56x56xf32>
    %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<64x24x56x56xf32>) -> tensor<64x24x56x56xf32>
    %17 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%14, %arg5 : tensor<64x144x56x56xf32>, tensor<24x144x1x1xf32>) outs(%16 : tensor<64x24x56x56xf32>) -> tensor<64x24x56x56xf32>
    %expanded_3 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [24, 1, 1] : tensor<24xf32> into tensor<24x1x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_3 : tensor<64x24x56x56xf32>, tensor<24x1x1xf32>) outs(%15 : tensor<64x24x56x56xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.addf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<64x24x56x56xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %18 : tensor<64x24x56x56xf32>, tensor<64x24x56x56xf32>) outs(%15 : tensor<64x24x56x56xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.addf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<64x24x56x56xf32>
    return %19 : tensor<64x24x56x56xf32>
  }
}
