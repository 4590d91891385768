// gated-depthwise: prime extents.
// At least 25248120 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @gated_depthwise(
// V100: }) {copy_stages = 2 : i64, footprint = 61056 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.70[0-9]*E-4}} : f64{{.*}}seconds_apart = {{2\.70[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 254, 1, 64]>, traffic_after = 79216256 : i64, traffic_before = 79216256 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 1051200 bytes needed in shared, 98304 there; other tiles: recompute, 1.28 times the arithmetic, 1.25 allowed"}
// V100: }) {copy_stages = 4 : i64, footprint = 92480 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.91[0-9]*E-4}} : f64{{.*}}seconds_apart = {{6\.07[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 48, 2, 8]>, traffic_after = 79201016 : i64, traffic_before = 345539320 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @gated_depthwise(
// H100: }) {copy_stages = 2 : i64, footprint = 61056 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{9\.27[0-9]*E-5}} : f64{{.*}}seconds_apart = {{9\.27[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 254, 1, 64]>, traffic_after = 79216256 : i64, traffic_before = 79216256 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 1051200 bytes needed in shared, 232448 there; other tiles: recompute, 1.28 times the arithmetic, 1.25 allowed"}
// H100: }) {copy_stages = 4 : i64, footprint = 230656 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.03[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.75[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 48, 4, 16]>, traffic_after = 79201016 : i64, traffic_before = 345539320 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @gated_depthwise(%arg0: tensor<1x48x256x256xf32>, %arg1: tensor<254x48x1x1xf32>, %arg2: tensor<254x1x3x3xf32>, %arg3: tensor<48x127x1x1xf32>) -> tensor<1x48x256x256xf32> {
    %cst = arith.constant 1.41421354 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x254x256x256xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<1x254x256x256xf32>) -> tensor<1x254x256x256xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%arg0, %arg1 : tensor<1x48x256x256xf32>, tensor<254x48x1x1xf32>) outs(%1 : tensor<1x254x256x256xf32>) -> tensor<1x254x256x256xf32>
    %padded = tensor.pad %2 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst_2 : f32
    } : tensor<1x254x256x256xf32> to tensor<1x254x258x258xf32>
    %collapsed = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<254x1x3x3xf32> into tensor<254x3x3xf32>
    %3 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %collapsed : tensor<1x254x258x258xf32>, tensor<254x3x3xf32>) outs(%1 : tensor<1x254x256x256xf32>) -> tensor<1x254x256x256xf32>
    %extracted_slice = tensor.extract_slice %3[0, 0, 0, 0] [1, 127, 256, 256] [1, 1, 1, 1] : tensor<1x254x256x256xf32> to tensor<1x127x256x256xf32>
    %extracted_slice_3 = tensor.extract_slice %3[0, 127, 0, 0] [1, 127, 256, 256] [1, 1, 1, 1] : tensor<1x254x256x256xf32> to tensor<1x127x256x256xf32>
    %4 = tensor.empty() : tensor<1x127x256x256xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice : tensor<1x127x256x256xf32>) outs(%4 : tensor<1x127x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.divf %in, %cst : f32
      %11 = math.erf %10 : f32
      %12 = arith.addf %11, %cst_1 : f32
      %13 = arith.mulf %12, %cst_0 : f32
      %14 = arith.mulf %in, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<1x127x256x256xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %extracted_slice_3 : tensor<1x127x256x256xf32>, tensor<1x127x256x256xf32>) outs(%4 : tensor<1x127x256x256xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %10 = arith.mulf %in, %in_4 : f32
      linalg.yield %10 : f32
    } -> tensor<1x127x256x256xf32>
    %7 = tensor.empty() : tensor<1x48x256x256xf32>
    %8 = linalg.fill ins(%cst_2 : f32) outs(%7 : tensor<1x48x256x256xf32>) -> tensor<1x48x256x256xf32>
    %9 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%6, %arg3 : tensor<1x127x256x256xf32>, tensor<48x127x1x1xf32>) outs(%8 : tensor<1x48x256x256xf32>) -> tensor<1x48x256x256xf32>
    return %9 : tensor<1x48x256x256xf32>
  }
}
