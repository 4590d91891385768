// add-norm: a result that is used inside as well.
// At least 100669440 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @add_norm(
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.08[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.08[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[4, 768]>, traffic_after = 75497472 : i64, traffic_before = 75497472 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_0 is read outside of the group and its tiles are staged"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_0 is read outside of the group and its tiles are staged"}
// V100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.50[0-9]*E-5}} : f64{{.*}}seconds_apart = {{4\.57[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 768]>, traffic_after = 50337792 : i64, traffic_before = 302389248 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @add_norm(
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.12[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.12[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[4, 768]>, traffic_after = 75497472 : i64, traffic_before = 75497472 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_0 is read outside of the group and its tiles are staged"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_0 is read outside of the group and its tiles are staged"}
// H100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.24[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.45[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[8, 768]>, traffic_after = 50337792 : i64, traffic_before = 302389248 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @add_norm(%arg0: tensor<8192x768xf32>, %arg1: tensor<8192x768xf32>, %arg2: tensor<768xf32>, %arg3: tensor<768xf32>) -> (tensor<8192x768xf32>, tensor<8192x768xf32>) {
    %cst = arith.constant 7.680000e+02 : f32
    %cst_0 = arith.constant 1.000000e-05 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<8192x768xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.addf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    %2 = tensor.empty() : tensor<8192xf32>
    %3 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<8192xf32>) -> tensor<8192xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<8192x768xf32>) outs(%3 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.addf %in, %out : f32
      linalg.yield %15 : f32
    } -> tensor<8192xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%4 : tensor<8192xf32>) outs(%2 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.divf %in, %cst : f32
      linalg.yield %15 : f32
    } -> tensor<8192xf32>
    %expanded = tensor.expand_shape %5 [[0, 1]] output_shape [8192, 1] : tensor<8192xf32> into tensor<8192x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %expanded : tensor<8192x768xf32>, tensor<8192x1xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.subf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<8192x768xf32>, tensor<8192x768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.mulf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<8192x768xf32>) outs(%3 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.addf %in, %out : f32
      linalg.yield %15 : f32
    } -> tensor<8192xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%8 : tensor<8192xf32>) outs(%2 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.divf %in, %cst : f32
      linalg.yield %15 : f32
    } -> tensor<8192xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%9 : tensor<8192xf32>) outs(%2 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.truncf %cst_0 : f64 to f32
      %16 = arith.addf %in, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<8192xf32>
    %11 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%10 : tensor<8192xf32>) outs(%2 : tensor<8192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = math.rsqrt %in : f32
      linalg.yield %15 : f32
    } -> tensor<8192xf32>
    %expanded_2 = tensor.expand_shape %11 [[0, 1]] output_shape [8192, 1] : tensor<8192xf32> into tensor<8192x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %expanded_2 : tensor<8192x768xf32>, tensor<8192x1xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.mulf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%12, %arg2 : tensor<8192x768xf32>, tensor<768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.mulf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg3 : tensor<8192x768xf32>, tensor<768xf32>) outs(%0 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %15 = arith.addf %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x768xf32>
    return %1, %14 : tensor<8192x768xf32>, tensor<8192x768xf32>
  }
}
