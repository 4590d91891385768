// window-attention: an odd extent.
// At least 308310156 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @window_attention(
// V100: }) {copy_stages = 2 : i64, footprint = 48640 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.84[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00277[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[2, 1, 49, 32]>, traffic_after = 308310156 : i64, traffic_before = 1811181708 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @window_attention(
// H100: }) {copy_stages = 2 : i64, footprint = 48640 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.93[0-9]*E-4}} : f64{{.*}}seconds_apart = {{7\.67[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[2, 1, 49, 32]>, traffic_after = 308310156 : i64, traffic_before = 1811181708 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map4 = affine_map<(d0, d1, d2) -> ()>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @window_attention(%arg0: tensor<4096x3x49x32xf32>, %arg1: tensor<4096x3x49x32xf32>, %arg2: tensor<4096x3x49x32xf32>, %arg3: tensor<1x3x49x49xf32>) -> tensor<4096x3x49x32xf32> {
    %cst = arith.constant 0.17677669529663689 : f64
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4096x3x49x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4096x3x49x32xf32>) outs(%0 : tensor<4096x3x49x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.truncf %cst : f64 to f32
      %23 = arith.mulf %in, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<4096x3x49x32xf32>
    %2 = tensor.empty() : tensor<4096x3x32x49xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<4096x3x49x32xf32>) outs(%2 : tensor<4096x3x32x49xf32>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<4096x3x49x32xf32> into tensor<12288x49x32xf32>
    %collapsed_3 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<4096x3x32x49xf32> into tensor<12288x32x49xf32>
    %3 = tensor.empty() : tensor<12288x49x49xf32>
    %4 = linalg.fill ins(%cst_2 : f32) outs(%3 : tensor<12288x49x49xf32>) -> tensor<12288x49x49xf32>
    %5 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<12288x49x32xf32>, tensor<12288x32x49xf32>) outs(%4 : tensor<12288x49x49xf32>) -> tensor<12288x49x49xf32>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [4096, 3, 49, 49] : tensor<12288x49x49xf32> into tensor<4096x3x49x49xf32>
    %6 = tensor.empty() : tensor<4096x3x49x49xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %arg3 : tensor<4096x3x49x49xf32>, tensor<1x3x49x49xf32>) outs(%6 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %22 = arith.addf %in, %in_9 : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49x49xf32>
    %8 = tensor.empty() : tensor<4096x3x49xi64>
    %9 = linalg.fill ins(%c0_i64 : i64) outs(%8 : tensor<4096x3x49xi64>) -> tensor<4096x3x49xi64>
    %10 = tensor.empty() : tensor<4096x3x49xf32>
    %11 = linalg.fill ins(%cst_1 : f32) outs(%10 : tensor<4096x3x49xf32>) -> tensor<4096x3x49xf32>
    %12:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%7 : tensor<4096x3x49x49xf32>) outs(%11, %9 : tensor<4096x3x49xf32>, tensor<4096x3x49xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %22 = linalg.index 3 : index
      %23 = arith.index_cast %22 : index to i64
      %24 = arith.maximumf %in, %out : f32
      %25 = arith.cmpf ogt, %in, %out : f32
      %26 = arith.select %25, %23, %out_9 : i64
      linalg.yield %24, %26 : f32, i64
    } -> (tensor<4096x3x49xf32>, tensor<4096x3x49xi64>)
    %expanded_4 = tensor.expand_shape %12#0 [[0], [1], [2, 3]] output_shape [4096, 3, 49, 1] : tensor<4096x3x49xf32> into tensor<4096x3x49x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %expanded_4 : tensor<4096x3x49x49xf32>, tensor<4096x3x49x1xf32>) outs(%6 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %22 = arith.subf %in, %in_9 : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49x49xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<4096x3x49x49xf32>) outs(%6 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = math.exp %in : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49x49xf32>
    %15 = linalg.fill ins(%cst_2 : f32) outs(%10 : tensor<4096x3x49xf32>) -> tensor<4096x3x49xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%14 : tensor<4096x3x49x49xf32>) outs(%15 : tensor<4096x3x49xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.addf %in, %out : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_0, %16 : tensor<f32>, tensor<4096x3x49xf32>) outs(%10 : tensor<4096x3x49xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %22 = arith.divf %in, %in_9 : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49xf32>
    %expanded_5 = tensor.expand_shape %17 [[0], [1], [2, 3]] output_shape [4096, 3, 49, 1] : tensor<4096x3x49xf32> into tensor<4096x3x49x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %expanded_5 : tensor<4096x3x49x49xf32>, tensor<4096x3x49x1xf32>) outs(%6 : tensor<4096x3x49x49xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %22 = arith.mulf %in, %in_9 : f32
      linalg.yield %22 : f32
    } -> tensor<4096x3x49x49xf32>
    %collapsed_6 = tensor.collapse_shape %18 [[0, 1], [2], [3]] : tensor<4096x3x49x49xf32> into tensor<12288x49x49xf32>
    %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<4096x3x49x32xf32> into tensor<12288x49x32xf32>
    %19 = tensor.empty() : tensor<12288x49x32xf32>
    %20 = linalg.fill ins(%cst_2 : f32) outs(%19 : tensor<12288x49x32xf32>) -> tensor<12288x49x32xf32>
    %21 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<12288x49x49xf32>, tensor<12288x49x32xf32>) outs(%20 : tensor<12288x49x32xf32>) -> tensor<12288x49x32xf32>
    %expanded_8 = tensor.expand_shape %21 [[0, 1], [2], [3]] output_shape [4096, 3, 49, 32] : tensor<12288x49x32xf32> into tensor<4096x3x49x32xf32>
    return %expanded_8 : tensor<4096x3x49x32xf32>
  }
}
