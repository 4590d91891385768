// long-attention: online softmax, streaming.
// At least 67108864 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @long_attention(
// V100: }) {footprint = 98304 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00433[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00725[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 128]>, traffic_after = 1107296256 : i64, traffic_before = 3254779904 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 98304 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 98304 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00308[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00758[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 4096]>, traffic_after = 2147483648 : i64, traffic_before = 5369233408 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.402e-02 s together, 7.717e-03 s apart"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.402e-02 s together, 7.717e-03 s apart"}
// V100: }) {copy_stages = 2 : i64, footprint = 82432 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00463[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00617[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 64]>, traffic_after = 1107296256 : i64, traffic_before = 2215641088 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @long_attention(
// H100: }) {copy_stages = 2 : i64, footprint = 147456 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00110[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00186[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 256, 64]>, traffic_after = 1107296256 : i64, traffic_before = 3254779904 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 232448 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 232448 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// H100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.26[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00201[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 4096]>, traffic_after = 2147483648 : i64, traffic_before = 5369233408 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 2.934e-03 s together, 1.942e-03 s apart"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 2.934e-03 s together, 1.942e-03 s apart"}
// H100: }) {copy_stages = 4 : i64, footprint = 230400 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00111[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00153[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 256, 64]>, traffic_after = 1107296256 : i64, traffic_before = 2215641088 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map3 = affine_map<(d0, d1, d2) -> ()>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @long_attention(%arg0: tensor<1x16x4096x64xf32>, %arg1: tensor<1x16x4096x64xf32>, %arg2: tensor<1x16x4096x64xf32>) -> tensor<1x16x4096x64xf32> {
    %cst = arith.constant 1.250000e-01 : f32
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x16x64x4096xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x16x4096x64xf32>) outs(%0 : tensor<1x16x64x4096xf32>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<1x16x4096x64xf32> into tensor<16x4096x64xf32>
    %collapsed_3 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x16x64x4096xf32> into tensor<16x64x4096xf32>
    %1 = tensor.empty() : tensor<16x4096x4096xf32>
    %2 = linalg.fill ins(%cst_2 : f32) outs(%1 : tensor<16x4096x4096xf32>) -> tensor<16x4096x4096xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<16x4096x64xf32>, tensor<16x64x4096xf32>) outs(%2 : tensor<16x4096x4096xf32>) -> tensor<16x4096x4096xf32>
    %expanded = tensor.expand_shape %3 [[0, 1], [2], [3]] output_shape [1, 16, 4096, 4096] : tensor<16x4096x4096xf32> into tensor<1x16x4096x4096xf32>
    %4 = tensor.empty() : tensor<1x16x4096x4096xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x16x4096x4096xf32>) outs(%4 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.mulf %in, %cst : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096x4096xf32>
    %6 = tensor.empty() : tensor<1x16x4096xi64>
    %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<1x16x4096xi64>) -> tensor<1x16x4096xi64>
    %8 = tensor.empty() : tensor<1x16x4096xf32>
    %9 = linalg.fill ins(%cst_1 : f32) outs(%8 : tensor<1x16x4096xf32>) -> tensor<1x16x4096xf32>
    %10:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5 : tensor<1x16x4096x4096xf32>) outs(%9, %7 : tensor<1x16x4096xf32>, tensor<1x16x4096xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %20 = linalg.index 3 : index
      %21 = arith.index_cast %20 : index to i64
      %22 = arith.maximumf %in, %out : f32
      %23 = arith.cmpf ogt, %in, %out : f32
      %24 = arith.select %23, %21, %out_9 : i64
      linalg.yield %22, %24 : f32, i64
    } -> (tensor<1x16x4096xf32>, tensor<1x16x4096xi64>)
    %expanded_4 = tensor.expand_shape %10#0 [[0], [1], [2, 3]] output_shape [1, 16, 4096, 1] : tensor<1x16x4096xf32> into tensor<1x16x4096x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %expanded_4 : tensor<1x16x4096x4096xf32>, tensor<1x16x4096x1xf32>) outs(%4 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %20 = arith.subf %in, %in_9 : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096x4096xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<1x16x4096x4096xf32>) outs(%4 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = math.exp %in : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096x4096xf32>
    %13 = linalg.fill ins(%cst_2 : f32) outs(%8 : tensor<1x16x4096xf32>) -> tensor<1x16x4096xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<1x16x4096x4096xf32>) outs(%13 : tensor<1x16x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_0, %14 : tensor<f32>, tensor<1x16x4096xf32>) outs(%8 : tensor<1x16x4096xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %20 = arith.divf %in, %in_9 : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096xf32>
    %expanded_5 = tensor.expand_shape %15 [[0], [1], [2, 3]] output_shape [1, 16, 4096, 1] : tensor<1x16x4096xf32> into tensor<1x16x4096x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_5 : tensor<1x16x4096x4096xf32>, tensor<1x16x4096x1xf32>) outs(%4 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %20 = arith.mulf %in, %in_9 : f32
      linalg.yield %20 : f32
    } -> tensor<1x16x4096x4096xf32>
    %collapsed_6 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<1x16x4096x4096xf32> into tensor<16x4096x4096xf32>
    %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<1x16x4096x64xf32> into tensor<16x4096x64xf32>
    %17 = tensor.empty() : tensor<16x4096x64xf32>
    %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<16x4096x64xf32>) -> tensor<16x4096x64xf32>
    %19 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<16x4096x4096xf32>, tensor<16x4096x64xf32>) outs(%18 : tensor<16x4096x64xf32>) -> tensor<16x4096x64xf32>
    %expanded_8 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [1, 16, 4096, 64] : tensor<16x4096x64xf32> into tensor<1x16x4096x64xf32>
    return %expanded_8 : tensor<1x16x4096x64xf32>
  }
}
