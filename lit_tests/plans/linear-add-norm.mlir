// linear-add-norm: a product and a norm of its rows.
// At least 77865984 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @linear_add_norm(
// V100: }) {footprint = 81920 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.43[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00100[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[64, 192]>, traffic_after = 77859840 : i64, traffic_before = 178523136 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 101504 bytes needed in shared, 98304 there; other tiles: recompute, 2.00 times the arithmetic, 1.25 allowed"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 101504 bytes needed in shared, 98304 there; other tiles: recompute, 2.00 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.50[0-9]*E-5}} : f64{{.*}}seconds_apart = {{4\.53[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 768]>, traffic_after = 50337792 : i64, traffic_before = 302389248 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @linear_add_norm(
// H100: }) {footprint = 200704 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.10[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.68[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[32, 768]>, traffic_after = 77865984 : i64, traffic_before = 480912384 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0) -> (d0)>
module {
  func.func @linear_add_norm(%arg0: tensor<8192x768xf32>, %arg1: tensor<768x768xf32>, %arg2: tensor<768xf32>, %arg3: tensor<8192x768xf32>, %arg4: tensor<768xf32>, %arg5: tensor<768xf32>) -> tensor<8192x768xf32> {
    %cst = arith.constant 9.99999996E-13 : f32
    %cst_0 = arith.constant 7.680000e+02 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<8192x768xf32>
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %2 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%arg0, %arg1 : tensor<8192x768xf32>, tensor<768x768xf32>) outs(%1 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<8192x768xf32>, tensor<768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.addf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %4 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3, %arg3 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.addf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %5 = tensor.empty() : tensor<8192xf32>
    %6 = linalg.fill ins(%cst_1 : f32) outs(%5 : tensor<8192xf32>) -> tensor<8192xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "reduction"]} ins(%4 : tensor<8192x768xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %out : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %8 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel"]} ins(%7 : tensor<8192xf32>) outs(%5 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.divf %in, %cst_0 : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel"]} ins(%4, %8 : tensor<8192x768xf32>, tensor<8192xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.subf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%9, %9 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "reduction"]} ins(%10 : tensor<8192x768xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %out : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel"]} ins(%11 : tensor<8192xf32>) outs(%5 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.divf %in, %cst_0 : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %13 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel"]} ins(%12 : tensor<8192xf32>) outs(%5 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %cst : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %14 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel"]} ins(%13 : tensor<8192xf32>) outs(%5 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = math.rsqrt %in : f32
      linalg.yield %18 : f32
    } -> tensor<8192xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel"]} ins(%9, %14 : tensor<8192x768xf32>, tensor<8192xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %16 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%15, %arg4 : tensor<8192x768xf32>, tensor<768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    %17 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%16, %arg5 : tensor<8192x768xf32>, tensor<768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.addf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<8192x768xf32>
    return %17 : tensor<8192x768xf32>
  }
}
