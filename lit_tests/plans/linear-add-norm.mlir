// linear-add-norm: a product and a norm of its rows.
// At least 77865984 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @linear_add_norm(
// V100: }) {copy_stages = 3 : i64, footprint = 86016 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00111[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00127[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[64, 96]>, traffic_after = 77859840 : i64, traffic_before = 178523136 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 101504 bytes needed in shared, 98304 there; other tiles: recompute, 2.00 times the arithmetic, 1.25 allowed"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 101504 bytes needed in shared, 98304 there; other tiles: recompute, 2.00 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.50[0-9]*E-5}} : f64{{.*}}seconds_apart = {{4\.57[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 768]>, traffic_after = 50337792 : i64, traffic_before = 302389248 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @linear_add_norm(
// H100: }) {copy_stages = 4 : i64, footprint = 229376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.55[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.02[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[256, 64]>, traffic_after = 77859840 : i64, traffic_before = 178523136 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 3.439e-04 s together, 2.781e-04 s apart"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 3.439e-04 s together, 2.781e-04 s apart"}
// H100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.24[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.45[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[8, 768]>, traffic_after = 50337792 : i64, traffic_before = 302389248 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @linear_add_norm(%arg0: tensor<8192x768xf32>, %arg1: tensor<768x768xf32>, %arg2: tensor<768xf32>, %arg3: tensor<8192x768xf32>, %arg4: tensor<768xf32>, %arg5: tensor<768xf32>) -> tensor<8192x768xf32> {
    %cst = arith.constant 7.680000e+02 : f32
    %cst_0 = arith.constant 9.9999999999999998E-13 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<768x768xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<768x768xf32>) outs(%0 : tensor<768x768xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<8192x768xf32>
    %2 = linalg.fill ins(%cst_1 : f32) outs(%1 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<8192x768xf32>, tensor<768x768xf32>) outs(%2 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %arg2 : tensor<8192x768xf32>, tensor<768xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.addf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %arg3 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.addf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %6 = tensor.empty() : tensor<8192xf32>
    %7 = linalg.fill ins(%cst_1 : f32) outs(%6 : tensor<8192xf32>) -> tensor<8192xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%5 : tensor<8192x768xf32>) outs(%7 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<8192xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%8 : tensor<8192xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst : f32
      linalg.yield %19 : f32
    } -> tensor<8192xf32>
    %expanded = tensor.expand_shape %9 [[0, 1]] output_shape [8192, 1] : tensor<8192xf32> into tensor<8192x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %expanded : tensor<8192x768xf32>, tensor<8192x1xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.subf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%10, %10 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.mulf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%11 : tensor<8192x768xf32>) outs(%7 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<8192xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%12 : tensor<8192xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst : f32
      linalg.yield %19 : f32
    } -> tensor<8192xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%13 : tensor<8192xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.truncf %cst_0 : f64 to f32
      %20 = arith.addf %in, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<8192xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%14 : tensor<8192xf32>) outs(%6 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.rsqrt %in : f32
      linalg.yield %19 : f32
    } -> tensor<8192xf32>
    %expanded_2 = tensor.expand_shape %15 [[0, 1]] output_shape [8192, 1] : tensor<8192xf32> into tensor<8192x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%10, %expanded_2 : tensor<8192x768xf32>, tensor<8192x1xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.mulf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%16, %arg4 : tensor<8192x768xf32>, tensor<768xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.mulf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%17, %arg5 : tensor<8192x768xf32>, tensor<768xf32>) outs(%1 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %19 = arith.addf %in, %in_3 : f32
      linalg.yield %19 : f32
    } -> tensor<8192x768xf32>
    return %18 : tensor<8192x768xf32>
  }
}
