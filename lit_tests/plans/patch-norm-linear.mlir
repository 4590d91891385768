// patch-norm-linear: regrouped indices.
// At least 62971008 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @patch_norm_linear(
// V100: }) {footprint = 18432 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.08[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.08[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 2, 1, 16, 144]>, traffic_after = 75497472 : i64, traffic_before = 75497472 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 256 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.10[0-9]*E-4}} : f64{{.*}}seconds_apart = {{6\.71[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 2, 16, 144]>, traffic_after = 75498624 : i64, traffic_before = 456131712 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {copy_stages = 3 : i64, footprint = 46080 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.42[0-9]*E-4}} : f64{{.*}}seconds_apart = {{2\.42[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[64, 96]>, traffic_after = 62969856 : i64, traffic_before = 62969856 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @patch_norm_linear(
// H100: }) {footprint = 18432 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.11[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.11[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 2, 1, 16, 144]>, traffic_after = 75497472 : i64, traffic_before = 75497472 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 256 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.18[0-9]*E-5}} : f64{{.*}}seconds_apart = {{2\.04[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 2, 16, 144]>, traffic_after = 75498624 : i64, traffic_before = 456131712 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {copy_stages = 3 : i64, footprint = 87552 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.04[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.04[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[256, 48]>, traffic_after = 62969856 : i64, traffic_before = 62969856 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d3)>
module {
  func.func @patch_norm_linear(%arg0: tensor<64x144x32x32xf32>, %arg1: tensor<144xf32>, %arg2: tensor<144xf32>, %arg3: tensor<96x144xf32>) -> tensor<64x4x256x96xf32> {
    %cst = arith.constant 1.440000e+02 : f32
    %cst_0 = arith.constant 1.000000e-05 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3], [4, 5]] output_shape [64, 144, 16, 2, 16, 2] : tensor<64x144x32x32xf32> into tensor<64x144x16x2x16x2xf32>
    %0 = tensor.empty() : tensor<64x2x2x16x16x144xf32>
    %transposed = linalg.transpose ins(%expanded : tensor<64x144x16x2x16x2xf32>) outs(%0 : tensor<64x2x2x16x16x144xf32>) permutation = [0, 3, 5, 2, 4, 1] 
    %collapsed = tensor.collapse_shape %transposed [[0], [1, 2], [3, 4], [5]] : tensor<64x2x2x16x16x144xf32> into tensor<64x4x256x144xf32>
    %1 = tensor.empty() : tensor<64x4x256xf32>
    %2 = linalg.fill ins(%cst_1 : f32) outs(%1 : tensor<64x4x256xf32>) -> tensor<64x4x256xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%collapsed : tensor<64x4x256x144xf32>) outs(%2 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256xf32>
    %4 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<64x4x256xf32>) outs(%1 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256xf32>
    %expanded_2 = tensor.expand_shape %4 [[0], [1], [2, 3]] output_shape [64, 4, 256, 1] : tensor<64x4x256xf32> into tensor<64x4x256x1xf32>
    %5 = tensor.empty() : tensor<64x4x256x144xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed, %expanded_2 : tensor<64x4x256x144xf32>, tensor<64x4x256x1xf32>) outs(%5 : tensor<64x4x256x144xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %19 = arith.subf %in, %in_7 : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256x144xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<64x4x256x144xf32>, tensor<64x4x256x144xf32>) outs(%5 : tensor<64x4x256x144xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %19 = arith.mulf %in, %in_7 : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256x144xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%7 : tensor<64x4x256x144xf32>) outs(%2 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<64x4x256xf32>) outs(%1 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<64x4x256xf32>) outs(%1 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.truncf %cst_0 : f64 to f32
      %20 = arith.addf %in, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<64x4x256xf32>
    %11 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<64x4x256xf32>) outs(%1 : tensor<64x4x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.rsqrt %in : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256xf32>
    %expanded_3 = tensor.expand_shape %11 [[0], [1], [2, 3]] output_shape [64, 4, 256, 1] : tensor<64x4x256xf32> into tensor<64x4x256x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %expanded_3 : tensor<64x4x256x144xf32>, tensor<64x4x256x1xf32>) outs(%5 : tensor<64x4x256x144xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %19 = arith.mulf %in, %in_7 : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256x144xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %arg1 : tensor<64x4x256x144xf32>, tensor<144xf32>) outs(%5 : tensor<64x4x256x144xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %19 = arith.mulf %in, %in_7 : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256x144xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %arg2 : tensor<64x4x256x144xf32>, tensor<144xf32>) outs(%5 : tensor<64x4x256x144xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %19 = arith.addf %in, %in_7 : f32
      linalg.yield %19 : f32
    } -> tensor<64x4x256x144xf32>
    %15 = tensor.empty() : tensor<144x96xf32>
    %transposed_4 = linalg.transpose ins(%arg3 : tensor<96x144xf32>) outs(%15 : tensor<144x96xf32>) permutation = [1, 0] 
    %collapsed_5 = tensor.collapse_shape %14 [[0, 1, 2], [3]] : tensor<64x4x256x144xf32> into tensor<65536x144xf32>
    %16 = tensor.empty() : tensor<65536x96xf32>
    %17 = linalg.fill ins(%cst_1 : f32) outs(%16 : tensor<65536x96xf32>) -> tensor<65536x96xf32>
    %18 = linalg.matmul ins(%collapsed_5, %transposed_4 : tensor<65536x144xf32>, tensor<144x96xf32>) outs(%17 : tensor<65536x96xf32>) -> tensor<65536x96xf32>
    %expanded_6 = tensor.expand_shape %18 [[0, 1, 2], [3]] output_shape [64, 4, 256, 96] : tensor<65536x96xf32> into tensor<64x4x256x96xf32>
    return %expanded_6 : tensor<64x4x256x96xf32>
  }
}
