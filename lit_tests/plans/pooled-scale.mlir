// pooled-scale: a reduction of everything, then all of it again.
// At least 536872000 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @pooled_scale(
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.75[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.75[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1]>, traffic_after = 268439552 : i64, traffic_before = 268439552 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// V100: }) {footprint = 192 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.44[0-9]*E-4}} : f64{{.*}}seconds_apart = {{7\.62[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 256, 256]>, traffic_after = 536944640 : i64, traffic_before = 536944640 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @pooled_scale(
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.01[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.01[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1]>, traffic_after = 268439552 : i64, traffic_before = 268439552 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// H100: }) {footprint = 192 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.98[0-9]*E-4}} : f64{{.*}}seconds_apart = {{2\.13[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 256, 256]>, traffic_after = 536876096 : i64, traffic_before = 536900672 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
module {
  func.func @pooled_scale(%arg0: tensor<64x16x256x256xf32>, %arg1: tensor<16x16x1x1xf32>, %arg2: tensor<16xf32>) -> tensor<64x16x256x256xf32> {
    %cst = arith.constant 6.553600e+04 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x16xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<64x16xf32>) -> tensor<64x16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%arg0 : tensor<64x16x256x256xf32>) outs(%1 : tensor<64x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.addf %in, %out : f32
      linalg.yield %10 : f32
    } -> tensor<64x16xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.divf %in, %cst : f32
      linalg.yield %10 : f32
    } -> tensor<64x16xf32>
    %expanded = tensor.expand_shape %3 [[0], [1, 2, 3]] output_shape [64, 16, 1, 1] : tensor<64x16xf32> into tensor<64x16x1x1xf32>
    %4 = tensor.empty() : tensor<64x16x1x1xf32>
    %5 = linalg.fill ins(%cst_0 : f32) outs(%4 : tensor<64x16x1x1xf32>) -> tensor<64x16x1x1xf32>
    %6 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%expanded, %arg1 : tensor<64x16x1x1xf32>, tensor<16x16x1x1xf32>) outs(%5 : tensor<64x16x1x1xf32>) -> tensor<64x16x1x1xf32>
    %expanded_1 = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %expanded_1 : tensor<64x16x1x1xf32>, tensor<16x1x1xf32>) outs(%4 : tensor<64x16x1x1xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.addf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<64x16x1x1xf32>
    %8 = tensor.empty() : tensor<64x16x256x256xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %7 : tensor<64x16x256x256xf32>, tensor<64x16x1x1xf32>) outs(%8 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.mulf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<64x16x256x256xf32>
    return %9 : tensor<64x16x256x256xf32>
  }
}
