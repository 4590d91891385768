// Two products with an activation between them, and what is not streamed around.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<1x2x6x5xf32>, %arg1: tensor<1x2x5x13xf32>, %arg2: tensor<1x2x13x4xf32>) -> tensor<1x2x6x4xf32> {
    %cst = arith.constant 2.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x2x6x5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x2x6x5xf32>) outs(%0 : tensor<1x2x6x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = math.tanh %in : f32
      linalg.yield %11 : f32
    } -> tensor<1x2x6x5xf32>
    %2 = tensor.empty() : tensor<1x2x6x13xf32>
    %3 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x2x6x13xf32>) -> tensor<1x2x6x13xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%1, %arg1 : tensor<1x2x6x5xf32>, tensor<1x2x5x13xf32>) outs(%3 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %11 = arith.mulf %in, %in_2 : f32
      %12 = arith.addf %out, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<1x2x6x13xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x2x6x13xf32>) outs(%2 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.addf %in, %cst_0 : f32
      linalg.yield %11 : f32
    } -> tensor<1x2x6x13xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<1x2x6x13xf32>) outs(%2 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.cmpf ugt, %in, %cst_1 : f32
      %12 = arith.select %11, %in, %cst_1 : f32
      linalg.yield %12 : f32
    } -> tensor<1x2x6x13xf32>
    %7 = tensor.empty() : tensor<1x2x6x4xf32>
    %8 = linalg.fill ins(%cst_1 : f32) outs(%7 : tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%6, %arg2 : tensor<1x2x6x13xf32>, tensor<1x2x13x4xf32>) outs(%8 : tensor<1x2x6x4xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %11 = arith.mulf %in, %in_2 : f32
      %12 = arith.addf %out, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<1x2x6x4xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<1x2x6x4xf32>) outs(%7 : tensor<1x2x6x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.mulf %in, %cst : f32
      linalg.yield %11 : f32
    } -> tensor<1x2x6x4xf32>
    return %10 : tensor<1x2x6x4xf32>
  }
}
