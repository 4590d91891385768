// conv-relu-pool: a window without overlap over a convolution.
// At least 257048832 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @conv_relu_pool(
// V100: }) {footprint = 74496 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00599[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00713[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[4, 64, 1, 56]>, traffic_after = 413405184 : i64, traffic_before = 1233273088 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 6.952e-03 s together, 6.366e-03 s apart"}
// V100: }) {footprint = 26880 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.72[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.72[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[4, 1, 8, 56]>, traffic_after = 256901120 : i64, traffic_before = 256901120 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @conv_relu_pool(
// H100: }) {footprint = 148224 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00195[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00255[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 8, 8]>, traffic_after = 257048832 : i64, traffic_before = 1490174208 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
module {
  func.func @conv_relu_pool(%arg0: tensor<64x64x112x112xf32>, %arg1: tensor<64x64x3x3xf32>, %arg2: tensor<64xf32>) -> tensor<64x64x56x56xf32> {
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst_0 : f32
    } : tensor<64x64x112x112xf32> to tensor<64x64x114x114xf32>
    %0 = tensor.empty() : tensor<64x64x112x112xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<64x64x112x112xf32>) -> tensor<64x64x112x112xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<64x64x114x114xf32>, tensor<64x64x3x3xf32>) outs(%1 : tensor<64x64x112x112xf32>) -> tensor<64x64x112x112xf32>
    %expanded = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<64x64x112x112xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<64x64x112x112xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %9 = arith.addf %in, %in_1 : f32
      linalg.yield %9 : f32
    } -> tensor<64x64x112x112xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<64x64x112x112xf32>) outs(%0 : tensor<64x64x112x112xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.cmpf olt, %in, %cst_0 : f32
      %10 = arith.select %9, %cst_0, %in : f32
      linalg.yield %10 : f32
    } -> tensor<64x64x112x112xf32>
    %5 = tensor.empty() : tensor<64x64x56x56xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<64x64x56x56xf32>) -> tensor<64x64x56x56xf32>
    %7 = tensor.empty() : tensor<2x2xf32>
    %8 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%4, %7 : tensor<64x64x112x112xf32>, tensor<2x2xf32>) outs(%6 : tensor<64x64x56x56xf32>) -> tensor<64x64x56x56xf32>
    return %8 : tensor<64x64x56x56xf32>
  }
}
