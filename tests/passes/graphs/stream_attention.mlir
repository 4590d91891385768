// Attention with a scale and a bias, its rows normalised after the second product.
#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
  func.func @main(%arg0: tensor<1x2x13x4xf32>, %arg1: tensor<1x2x6x4xf32>, %arg2: tensor<1x1x6x13xf32>, %arg3: tensor<1x2x13x4xf32>) -> tensor<1x2x6x4xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x2x6x13xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<1x2x6x13xf32>) -> tensor<1x2x6x13xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg1, %arg0 : tensor<1x2x6x4xf32>, tensor<1x2x13x4xf32>) outs(%1 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<1x2x6x13xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x2x6x13xf32>) outs(%0 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.mulf %in, %cst_0 : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6x13xf32>
    %4 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %arg2 : tensor<1x2x6x13xf32>, tensor<1x1x6x13xf32>) outs(%0 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.addf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6x13xf32>
    %5 = tensor.empty() : tensor<1x2x6xf32>
    %6 = linalg.fill ins(%cst_1 : f32) outs(%5 : tensor<1x2x6xf32>) -> tensor<1x2x6xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%4 : tensor<1x2x6x13xf32>) outs(%6 : tensor<1x2x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.maximumf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6xf32>
    %8 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %7 : tensor<1x2x6x13xf32>, tensor<1x2x6xf32>) outs(%0 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.subf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6x13xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<1x2x6x13xf32>) outs(%0 : tensor<1x2x6x13xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.exp %in : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6x13xf32>
    %10 = linalg.fill ins(%cst_2 : f32) outs(%5 : tensor<1x2x6xf32>) -> tensor<1x2x6xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%9 : tensor<1x2x6x13xf32>) outs(%10 : tensor<1x2x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.addf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<1x2x6xf32>) outs(%5 : tensor<1x2x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.divf %cst, %in : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6xf32>
    %13 = tensor.empty() : tensor<1x2x6x4xf32>
    %14 = linalg.fill ins(%cst_2 : f32) outs(%13 : tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map7, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%9, %arg3 : tensor<1x2x6x13xf32>, tensor<1x2x13x4xf32>) outs(%14 : tensor<1x2x6x4xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      %18 = arith.addf %out, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<1x2x6x4xf32>
    %16 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %12 : tensor<1x2x6x4xf32>, tensor<1x2x6xf32>) outs(%13 : tensor<1x2x6x4xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.mulf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<1x2x6x4xf32>
    return %16 : tensor<1x2x6x4xf32>
  }
}
