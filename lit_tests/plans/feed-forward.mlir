// feed-forward: two products, streaming along the second one's reduction.
// At least 69221376 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @feed_forward(
// V100: }) {footprint = 88064 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00424[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00479[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[256, 48]>, traffic_after = 428212224 : i64, traffic_before = 830484480 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 405632 bytes needed in shared, 98304 there; other tiles: recompute, 1.50 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// V100: }) {copy_stages = 2 : i64, footprint = 81920 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00414[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00414[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[256, 64]>, traffic_after = 427819008 : i64, traffic_before = 427819008 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 4.458e-03 s together, 4.216e-03 s apart"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.34[0-9]*E-5}} : f64{{.*}}seconds_apart = {{7\.34[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[16, 384]>, traffic_after = 50334720 : i64, traffic_before = 50334720 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @feed_forward(
// H100: }) {copy_stages = 4 : i64, footprint = 229376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{9\.86[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00113[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[256, 64]>, traffic_after = 135278592 : i64, traffic_before = 537931776 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 405632 bytes needed in shared, 232448 there; other tiles: recompute, 1.50 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// H100: }) {copy_stages = 4 : i64, footprint = 229376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{9\.72[0-9]*E-4}} : f64{{.*}}seconds_apart = {{9\.93[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[256, 64]>, traffic_after = 135269376 : i64, traffic_before = 185601024 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @feed_forward(%arg0: tensor<8192x768xf32>, %arg1: tensor<3072x768xf32>, %arg2: tensor<3072xf32>, %arg3: tensor<768x3072xf32>, %arg4: tensor<768xf32>) -> tensor<8192x768xf32> {
    %cst = arith.constant 1.41421354 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<768x3072xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<3072x768xf32>) outs(%0 : tensor<768x3072xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<8192x3072xf32>
    %2 = linalg.fill ins(%cst_2 : f32) outs(%1 : tensor<8192x3072xf32>) -> tensor<8192x3072xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<8192x768xf32>, tensor<768x3072xf32>) outs(%2 : tensor<8192x3072xf32>) -> tensor<8192x3072xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %arg2 : tensor<8192x3072xf32>, tensor<3072xf32>) outs(%1 : tensor<8192x3072xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %11 = arith.addf %in, %in_4 : f32
      linalg.yield %11 : f32
    } -> tensor<8192x3072xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<8192x3072xf32>) outs(%1 : tensor<8192x3072xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.divf %in, %cst : f32
      %12 = math.erf %11 : f32
      %13 = arith.addf %12, %cst_1 : f32
      %14 = arith.mulf %13, %cst_0 : f32
      %15 = arith.mulf %in, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<8192x3072xf32>
    %6 = tensor.empty() : tensor<3072x768xf32>
    %transposed_3 = linalg.transpose ins(%arg3 : tensor<768x3072xf32>) outs(%6 : tensor<3072x768xf32>) permutation = [1, 0] 
    %7 = tensor.empty() : tensor<8192x768xf32>
    %8 = linalg.fill ins(%cst_2 : f32) outs(%7 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %9 = linalg.matmul ins(%5, %transposed_3 : tensor<8192x3072xf32>, tensor<3072x768xf32>) outs(%8 : tensor<8192x768xf32>) -> tensor<8192x768xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %arg4 : tensor<8192x768xf32>, tensor<768xf32>) outs(%7 : tensor<8192x768xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %11 = arith.addf %in, %in_4 : f32
      linalg.yield %11 : f32
    } -> tensor<8192x768xf32>
    return %10 : tensor<8192x768xf32>
  }
}
