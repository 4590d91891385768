// double-conv: a halo that is computed again.
// At least 25985536 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @double_conv(
// V100: }) {footprint = 74496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.98[0-9]*E-4}} : f64{{.*}}seconds_apart = {{4\.74[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 1, 224]>, traffic_after = 25837824 : i64, traffic_before = 77218048 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 191232 bytes needed in shared, 98304 there; other tiles: recompute, 1.28 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 74496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.98[0-9]*E-4}} : f64{{.*}}seconds_apart = {{4\.74[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 1, 224]>, traffic_after = 25837824 : i64, traffic_before = 77218048 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @double_conv(
// H100: }) {footprint = 74496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.55[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.79[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 1, 224]>, traffic_after = 25837824 : i64, traffic_before = 77218048 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 4.160e-04 s together, 3.102e-04 s apart"}
// H100: }) {footprint = 74496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.55[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.79[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 1, 224]>, traffic_after = 25837824 : i64, traffic_before = 77218048 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
module {
  func.func @double_conv(%arg0: tensor<1x64x224x224xf32>, %arg1: tensor<64x64x3x3xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64x64x3x3xf32>, %arg4: tensor<64xf32>) -> tensor<1x64x224x224xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst : f32
    } : tensor<1x64x224x224xf32> to tensor<1x64x226x226xf32>
    %0 = tensor.empty() : tensor<1x64x224x224xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x64x224x224xf32>) -> tensor<1x64x224x224xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x64x226x226xf32>, tensor<64x64x3x3xf32>) outs(%1 : tensor<1x64x224x224xf32>) -> tensor<1x64x224x224xf32>
    %expanded = tensor.expand_shape %arg2 [[0, 1, 2, 3]] output_shape [1, 64, 1, 1] : tensor<64xf32> into tensor<1x64x1x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<1x64x224x224xf32>, tensor<1x64x1x1xf32>) outs(%0 : tensor<1x64x224x224xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %8 = arith.mulf %in, %in_2 : f32
      linalg.yield %8 : f32
    } -> tensor<1x64x224x224xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x64x224x224xf32>) outs(%0 : tensor<1x64x224x224xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.cmpf olt, %in, %cst : f32
      %9 = arith.select %8, %cst, %in : f32
      linalg.yield %9 : f32
    } -> tensor<1x64x224x224xf32>
    %padded_0 = tensor.pad %4 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst : f32
    } : tensor<1x64x224x224xf32> to tensor<1x64x226x226xf32>
    %5 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_0, %arg3 : tensor<1x64x226x226xf32>, tensor<64x64x3x3xf32>) outs(%1 : tensor<1x64x224x224xf32>) -> tensor<1x64x224x224xf32>
    %expanded_1 = tensor.expand_shape %arg4 [[0, 1, 2, 3]] output_shape [1, 64, 1, 1] : tensor<64xf32> into tensor<1x64x1x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %expanded_1 : tensor<1x64x224x224xf32>, tensor<1x64x1x1xf32>) outs(%0 : tensor<1x64x224x224xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %8 = arith.mulf %in, %in_2 : f32
      linalg.yield %8 : f32
    } -> tensor<1x64x224x224xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x64x224x224xf32>) outs(%0 : tensor<1x64x224x224xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.cmpf olt, %in, %cst : f32
      %9 = arith.select %8, %cst, %in : f32
      linalg.yield %9 : f32
    } -> tensor<1x64x224x224xf32>
    return %7 : tensor<1x64x224x224xf32>
  }
}
