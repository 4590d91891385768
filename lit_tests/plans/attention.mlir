// attention: three reductions.
// At least 100696064 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @attention(
// V100: }) {copy_stages = 4 : i64, footprint = 82176 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.51[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00128[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 64, 64]>, traffic_after = 100696064 : i64, traffic_before = 757366784 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @attention(
// H100: }) {copy_stages = 4 : i64, footprint = 196608 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.09[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.61[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 64]>, traffic_after = 100696064 : i64, traffic_before = 757366784 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map4 = affine_map<(d0, d1, d2) -> ()>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @attention(%arg0: tensor<64x12x128x64xf32>, %arg1: tensor<64x12x128x64xf32>, %arg2: tensor<64x12x128x64xf32>, %arg3: tensor<64x1x1x128xf32>) -> tensor<64x12x128x64xf32> {
    %cst = arith.constant 1.250000e-01 : f32
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x12x64x128xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<64x12x128x64xf32>) outs(%0 : tensor<64x12x64x128xf32>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<64x12x128x64xf32> into tensor<768x128x64xf32>
    %collapsed_3 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<64x12x64x128xf32> into tensor<768x64x128xf32>
    %1 = tensor.empty() : tensor<768x128x128xf32>
    %2 = linalg.fill ins(%cst_2 : f32) outs(%1 : tensor<768x128x128xf32>) -> tensor<768x128x128xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<768x128x64xf32>, tensor<768x64x128xf32>) outs(%2 : tensor<768x128x128xf32>) -> tensor<768x128x128xf32>
    %expanded = tensor.expand_shape %3 [[0, 1], [2], [3]] output_shape [64, 12, 128, 128] : tensor<768x128x128xf32> into tensor<64x12x128x128xf32>
    %4 = tensor.empty() : tensor<64x12x128x128xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<64x12x128x128xf32>) outs(%4 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %21 = arith.mulf %in, %cst : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128x128xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %arg3 : tensor<64x12x128x128xf32>, tensor<64x1x1x128xf32>) outs(%4 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %21 = arith.addf %in, %in_9 : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128x128xf32>
    %7 = tensor.empty() : tensor<64x12x128xi64>
    %8 = linalg.fill ins(%c0_i64 : i64) outs(%7 : tensor<64x12x128xi64>) -> tensor<64x12x128xi64>
    %9 = tensor.empty() : tensor<64x12x128xf32>
    %10 = linalg.fill ins(%cst_1 : f32) outs(%9 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %11:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%6 : tensor<64x12x128x128xf32>) outs(%10, %8 : tensor<64x12x128xf32>, tensor<64x12x128xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %21 = linalg.index 3 : index
      %22 = arith.index_cast %21 : index to i64
      %23 = arith.maximumf %in, %out : f32
      %24 = arith.cmpf ogt, %in, %out : f32
      %25 = arith.select %24, %22, %out_9 : i64
      linalg.yield %23, %25 : f32, i64
    } -> (tensor<64x12x128xf32>, tensor<64x12x128xi64>)
    %expanded_4 = tensor.expand_shape %11#0 [[0], [1], [2, 3]] output_shape [64, 12, 128, 1] : tensor<64x12x128xf32> into tensor<64x12x128x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %expanded_4 : tensor<64x12x128x128xf32>, tensor<64x12x128x1xf32>) outs(%4 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %21 = arith.subf %in, %in_9 : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128x128xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<64x12x128x128xf32>) outs(%4 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %21 = math.exp %in : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128x128xf32>
    %14 = linalg.fill ins(%cst_2 : f32) outs(%9 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%13 : tensor<64x12x128x128xf32>) outs(%14 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %21 = arith.addf %in, %out : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128xf32>
    %16 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_0, %15 : tensor<f32>, tensor<64x12x128xf32>) outs(%9 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %21 = arith.divf %in, %in_9 : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128xf32>
    %expanded_5 = tensor.expand_shape %16 [[0], [1], [2, 3]] output_shape [64, 12, 128, 1] : tensor<64x12x128xf32> into tensor<64x12x128x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %expanded_5 : tensor<64x12x128x128xf32>, tensor<64x12x128x1xf32>) outs(%4 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %21 = arith.mulf %in, %in_9 : f32
      linalg.yield %21 : f32
    } -> tensor<64x12x128x128xf32>
    %collapsed_6 = tensor.collapse_shape %17 [[0, 1], [2], [3]] : tensor<64x12x128x128xf32> into tensor<768x128x128xf32>
    %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<64x12x128x64xf32> into tensor<768x128x64xf32>
    %18 = tensor.empty() : tensor<768x128x64xf32>
    %19 = linalg.fill ins(%cst_2 : f32) outs(%18 : tensor<768x128x64xf32>) -> tensor<768x128x64xf32>
    %20 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<768x128x128xf32>, tensor<768x128x64xf32>) outs(%19 : tensor<768x128x64xf32>) -> tensor<768x128x64xf32>
    %expanded_8 = tensor.expand_shape %20 [[0, 1], [2], [3]] output_shape [64, 12, 128, 64] : tensor<768x128x64xf32> into tensor<64x12x128x64xf32>
    return %expanded_8 : tensor<64x12x128x64xf32>
  }
}
