// attention: three reductions.
// At least 100696064 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @attention(
// V100: }) {footprint = 90112 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.33[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00118[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 64, 64]>, traffic_after = 100696064 : i64, traffic_before = 757366784 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @attention(
// H100: }) {footprint = 163840 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.10[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.32[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 64]>, traffic_after = 100696064 : i64, traffic_before = 757366784 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
  func.func @attention(%arg0: tensor<64x12x128x64xf32>, %arg1: tensor<64x12x128x64xf32>, %arg2: tensor<64x12x128x64xf32>, %arg3: tensor<64x1x1x128xf32>) -> tensor<64x12x128x64xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 1.250000e-01 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x12x128x128xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<64x12x128x128xf32>) -> tensor<64x12x128x128xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<64x12x128x64xf32>, tensor<64x12x128x64xf32>) outs(%1 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<64x12x128x128xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<64x12x128x128xf32>) outs(%0 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.mulf %in, %cst_0 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %4 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %arg3 : tensor<64x12x128x128xf32>, tensor<64x1x1x128xf32>) outs(%0 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.addf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %5 = tensor.empty() : tensor<64x12x128xf32>
    %6 = linalg.fill ins(%cst_1 : f32) outs(%5 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%4 : tensor<64x12x128x128xf32>) outs(%6 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.maximumf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128xf32>
    %8 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %7 : tensor<64x12x128x128xf32>, tensor<64x12x128xf32>) outs(%0 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.subf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<64x12x128x128xf32>) outs(%0 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.exp %in : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %10 = linalg.fill ins(%cst_2 : f32) outs(%5 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%9 : tensor<64x12x128x128xf32>) outs(%10 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.addf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<64x12x128xf32>) outs(%5 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.divf %cst, %in : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128xf32>
    %13 = tensor.empty() : tensor<64x12x128x64xf32>
    %14 = linalg.fill ins(%cst_2 : f32) outs(%13 : tensor<64x12x128x64xf32>) -> tensor<64x12x128x64xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map7, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%9, %arg2 : tensor<64x12x128x128xf32>, tensor<64x12x128x64xf32>) outs(%14 : tensor<64x12x128x64xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<64x12x128x64xf32>
    %16 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %12 : tensor<64x12x128x64xf32>, tensor<64x12x128xf32>) outs(%13 : tensor<64x12x128x64xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x64xf32>
    return %16 : tensor<64x12x128x64xf32>
  }
}
