// feed-forward-small: two products with weights that fit a cache.
// At least 154437504 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @feed_forward_small(
// V100: }) {footprint = 95744 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00271[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00460[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[28, 96]>, traffic_after = 154437504 : i64, traffic_before = 2158266240 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @feed_forward_small(
// H100: }) {footprint = 205952 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.14[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00114[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[49, 96]>, traffic_after = 154437504 : i64, traffic_before = 2158266240 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @feed_forward_small(%arg0: tensor<200704x96xf32>, %arg1: tensor<384x96xf32>, %arg2: tensor<384xf32>, %arg3: tensor<96x384xf32>, %arg4: tensor<96xf32>) -> tensor<200704x96xf32> {
    %cst = arith.constant 0.707106769 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<200704x384xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<200704x384xf32>) -> tensor<200704x384xf32>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<200704x96xf32>, tensor<384x96xf32>) outs(%1 : tensor<200704x384xf32>) -> tensor<200704x384xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<200704x384xf32>, tensor<384xf32>) outs(%0 : tensor<200704x384xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %9 = arith.addf %in, %in_3 : f32
      linalg.yield %9 : f32
    } -> tensor<200704x384xf32>
    %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<200704x384xf32>) outs(%0 : tensor<200704x384xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.mulf %in, %cst : f32
      %10 = math.erf %9 : f32
      %11 = arith.addf %10, %cst_1 : f32
      %12 = arith.mulf %11, %cst_0 : f32
      %13 = arith.mulf %in, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<200704x384xf32>
    %5 = tensor.empty() : tensor<200704x96xf32>
    %6 = linalg.fill ins(%cst_2 : f32) outs(%5 : tensor<200704x96xf32>) -> tensor<200704x96xf32>
    %7 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%4, %arg3 : tensor<200704x384xf32>, tensor<96x384xf32>) outs(%6 : tensor<200704x96xf32>) -> tensor<200704x96xf32>
    %8 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%7, %arg4 : tensor<200704x96xf32>, tensor<96xf32>) outs(%5 : tensor<200704x96xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %9 = arith.addf %in, %in_3 : f32
      linalg.yield %9 : f32
    } -> tensor<200704x96xf32>
    return %8 : tensor<200704x96xf32>
  }
}
