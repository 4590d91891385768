// mlp: thirteen operators.
// At least 555823872 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @mlp(
// V100: }) {footprint = 69632 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00808[0-9]*}} : f64{{.*}}seconds_apart = {{0\.0219[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[96, 3]>, traffic_after = 555823872 : i64, traffic_before = 13296022272 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @mlp(
// H100: }) {footprint = 90112 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00198[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00572[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[128, 3]>, traffic_after = 555823872 : i64, traffic_before = 13296022272 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @mlp(%arg0: tensor<2073600x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>, %arg3: tensor<64x64xf32>, %arg4: tensor<64x64xf32>, %arg5: tensor<64x64xf32>, %arg6: tensor<64x64xf32>, %arg7: tensor<3x64xf32>) -> tensor<2073600x3xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2073600x64xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %4 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%3, %arg2 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %6 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%5, %arg3 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %8 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%7, %arg4 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %10 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%9, %arg5 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %12 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%11, %arg6 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<2073600x64xf32>) outs(%0 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.cmpf olt, %in, %cst : f32
      %18 = arith.select %17, %cst, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2073600x64xf32>
    %14 = tensor.empty() : tensor<2073600x3xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<2073600x3xf32>) -> tensor<2073600x3xf32>
    %16 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%13, %arg7 : tensor<2073600x64xf32>, tensor<3x64xf32>) outs(%15 : tensor<2073600x3xf32>) -> tensor<2073600x3xf32>
    return %16 : tensor<2073600x3xf32>
  }
}
