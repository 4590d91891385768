// scores: a row reduction over a product.
// At least 100696064 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @scores(
// V100: }) {copy_stages = 2 : i64, footprint = 81920 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.70[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00111[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 64, 128]>, traffic_after = 100696064 : i64, traffic_before = 707035136 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @scores(
// H100: }) {copy_stages = 2 : i64, footprint = 196608 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.07[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.16[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 128]>, traffic_after = 100696064 : i64, traffic_before = 707035136 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map4 = affine_map<(d0, d1, d2) -> ()>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @scores(%arg0: tensor<64x12x128x64xf32>, %arg1: tensor<64x12x64x128xf32>, %arg2: tensor<64x1x1x128xf32>) -> tensor<64x12x128x128xf32> {
    %cst = arith.constant 1.250000e-01 : f32
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_2 = arith.constant 0.000000e+00 : f32
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<64x12x128x64xf32> into tensor<768x128x64xf32>
    %collapsed_3 = tensor.collapse_shape %arg1 [[0, 1], [2], [3]] : tensor<64x12x64x128xf32> into tensor<768x64x128xf32>
    %0 = tensor.empty() : tensor<768x128x128xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<768x128x128xf32>) -> tensor<768x128x128xf32>
    %2 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<768x128x64xf32>, tensor<768x64x128xf32>) outs(%1 : tensor<768x128x128xf32>) -> tensor<768x128x128xf32>
    %expanded = tensor.expand_shape %2 [[0, 1], [2], [3]] output_shape [64, 12, 128, 128] : tensor<768x128x128xf32> into tensor<64x12x128x128xf32>
    %3 = tensor.empty() : tensor<64x12x128x128xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<64x12x128x128xf32>) outs(%3 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.mulf %in, %cst : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %arg2 : tensor<64x12x128x128xf32>, tensor<64x1x1x128xf32>) outs(%3 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %17 = arith.addf %in, %in_6 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %6 = tensor.empty() : tensor<64x12x128xi64>
    %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<64x12x128xi64>) -> tensor<64x12x128xi64>
    %8 = tensor.empty() : tensor<64x12x128xf32>
    %9 = linalg.fill ins(%cst_1 : f32) outs(%8 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %10:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5 : tensor<64x12x128x128xf32>) outs(%9, %7 : tensor<64x12x128xf32>, tensor<64x12x128xi64>) {
    ^bb0(%in: f32, %out: f32, %out_6: i64):
      %17 = linalg.index 3 : index
      %18 = arith.index_cast %17 : index to i64
      %19 = arith.maximumf %in, %out : f32
      %20 = arith.cmpf ogt, %in, %out : f32
      %21 = arith.select %20, %18, %out_6 : i64
      linalg.yield %19, %21 : f32, i64
    } -> (tensor<64x12x128xf32>, tensor<64x12x128xi64>)
    %expanded_4 = tensor.expand_shape %10#0 [[0], [1], [2, 3]] output_shape [64, 12, 128, 1] : tensor<64x12x128xf32> into tensor<64x12x128x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %expanded_4 : tensor<64x12x128x128xf32>, tensor<64x12x128x1xf32>) outs(%3 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %17 = arith.subf %in, %in_6 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<64x12x128x128xf32>) outs(%3 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.exp %in : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    %13 = linalg.fill ins(%cst_2 : f32) outs(%8 : tensor<64x12x128xf32>) -> tensor<64x12x128xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<64x12x128x128xf32>) outs(%13 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.addf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128xf32>
    %15 = linalg.generic {indexing_maps = [#map4, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_0, %14 : tensor<f32>, tensor<64x12x128xf32>) outs(%8 : tensor<64x12x128xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %17 = arith.divf %in, %in_6 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128xf32>
    %expanded_5 = tensor.expand_shape %15 [[0], [1], [2, 3]] output_shape [64, 12, 128, 1] : tensor<64x12x128xf32> into tensor<64x12x128x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_5 : tensor<64x12x128x128xf32>, tensor<64x12x128x1xf32>) outs(%3 : tensor<64x12x128x128xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %17 = arith.mulf %in, %in_6 : f32
      linalg.yield %17 : f32
    } -> tensor<64x12x128x128xf32>
    return %16 : tensor<64x12x128x128xf32>
  }
}
