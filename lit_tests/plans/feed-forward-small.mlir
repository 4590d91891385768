// feed-forward-small: two products with weights that fit a cache.
// At least 154437504 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @feed_forward_small(
// V100: }) {copy_stages = 2 : i64, footprint = 87296 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00190[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00356[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[98, 96]>, traffic_after = 385500672 : i64, traffic_before = 1618626048 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 4.621e-03 s together, 3.669e-03 s apart"}
// V100: }) {copy_stages = 2 : i64, footprint = 87296 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00175[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00197[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[98, 96]>, traffic_after = 385499520 : i64, traffic_before = 539640192 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @feed_forward_small(
// H100: }) {copy_stages = 3 : i64, footprint = 167936 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.69[0-9]*E-4}} : f64{{.*}}seconds_apart = {{9\.15[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[224, 64]>, traffic_after = 385500672 : i64, traffic_before = 1618626048 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.004e-03 s together, 9.256e-04 s apart"}
// H100: }) {copy_stages = 3 : i64, footprint = 112128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.56[0-9]*E-4}} : f64{{.*}}seconds_apart = {{5\.14[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[98, 96]>, traffic_after = 385499520 : i64, traffic_before = 539640192 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @feed_forward_small(%arg0: tensor<200704x96xf32>, %arg1: tensor<384x96xf32>, %arg2: tensor<384xf32>, %arg3: tensor<96x384xf32>, %arg4: tensor<96xf32>) -> tensor<200704x96xf32> {
    %cst = arith.constant 1.41421354 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<96x384xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<384x96xf32>) outs(%0 : tensor<96x384xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<200704x384xf32>
    %2 = linalg.fill ins(%cst_2 : f32) outs(%1 : tensor<200704x384xf32>) -> tensor<200704x384xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<200704x96xf32>, tensor<96x384xf32>) outs(%2 : tensor<200704x384xf32>) -> tensor<200704x384xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %arg2 : tensor<200704x384xf32>, tensor<384xf32>) outs(%1 : tensor<200704x384xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %11 = arith.addf %in, %in_4 : f32
      linalg.yield %11 : f32
    } -> tensor<200704x384xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<200704x384xf32>) outs(%1 : tensor<200704x384xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.divf %in, %cst : f32
      %12 = math.erf %11 : f32
      %13 = arith.addf %12, %cst_1 : f32
      %14 = arith.mulf %13, %cst_0 : f32
      %15 = arith.mulf %in, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<200704x384xf32>
    %6 = tensor.empty() : tensor<384x96xf32>
    %transposed_3 = linalg.transpose ins(%arg3 : tensor<96x384xf32>) outs(%6 : tensor<384x96xf32>) permutation = [1, 0] 
    %7 = tensor.empty() : tensor<200704x96xf32>
    %8 = linalg.fill ins(%cst_2 : f32) outs(%7 : tensor<200704x96xf32>) -> tensor<200704x96xf32>
    %9 = linalg.matmul ins(%5, %transposed_3 : tensor<200704x384xf32>, tensor<384x96xf32>) outs(%8 : tensor<200704x96xf32>) -> tensor<200704x96xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %arg4 : tensor<200704x96xf32>, tensor<96xf32>) outs(%7 : tensor<200704x96xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %11 = arith.addf %in, %in_4 : f32
      linalg.yield %11 : f32
    } -> tensor<200704x96xf32>
    return %10 : tensor<200704x96xf32>
  }
}
