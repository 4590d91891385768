// window-attention: an odd extent.
// At least 308310156 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @window_attention(
// V100: }) {footprint = 22208 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.24[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00267[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 49, 32]>, traffic_after = 308310156 : i64, traffic_before = 1811181708 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @window_attention(
// H100: }) {footprint = 22208 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.70[0-9]*E-4}} : f64{{.*}}seconds_apart = {{7\.23[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 49, 32]>, traffic_after = 308310156 : i64, traffic_before = 1811181708 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
  func.func @window_attention(%arg0: tensor<4096x3x49x32xf32>, %arg1: tensor<4096x3x49x32xf32>, %arg2: tensor<4096x3x49x32xf32>, %arg3: tensor<1x3x49x49xf32>) -> tensor<4096x3x49x32xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 0.176776692 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4096x3x49x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4096x3x49x32xf32>) outs(%0 : tensor<4096x3x49x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.mulf %in, %cst_0 : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49x32xf32>
    %2 = tensor.empty() : tensor<4096x3x49x49xf32>
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<4096x3x49x49xf32>) -> tensor<4096x3x49x49xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%1, %arg1 : tensor<4096x3x49x32xf32>, tensor<4096x3x49x32xf32>) outs(%3 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<4096x3x49x49xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %arg3 : tensor<4096x3x49x49xf32>, tensor<1x3x49x49xf32>) outs(%2 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.addf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49x49xf32>
    %6 = tensor.empty() : tensor<4096x3x49xf32>
    %7 = linalg.fill ins(%cst_1 : f32) outs(%6 : tensor<4096x3x49xf32>) -> tensor<4096x3x49xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5 : tensor<4096x3x49x49xf32>) outs(%7 : tensor<4096x3x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.maximumf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %8 : tensor<4096x3x49x49xf32>, tensor<4096x3x49xf32>) outs(%2 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.subf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49x49xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<4096x3x49x49xf32>) outs(%2 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.exp %in : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49x49xf32>
    %11 = linalg.fill ins(%cst_2 : f32) outs(%6 : tensor<4096x3x49xf32>) -> tensor<4096x3x49xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%10 : tensor<4096x3x49x49xf32>) outs(%11 : tensor<4096x3x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.addf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49xf32>
    %13 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<4096x3x49xf32>) outs(%6 : tensor<4096x3x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.divf %cst, %in : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49xf32>
    %14 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<4096x3x49x32xf32>) -> tensor<4096x3x49x32xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%10, %arg2 : tensor<4096x3x49x49xf32>, tensor<4096x3x49x32xf32>) outs(%14 : tensor<4096x3x49x32xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<4096x3x49x32xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %13 : tensor<4096x3x49x32xf32>, tensor<4096x3x49xf32>) outs(%0 : tensor<4096x3x49x32xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<4096x3x49x32xf32>
    return %16 : tensor<4096x3x49x32xf32>
  }
}
