// embedding-norm: gathers.
// At least 119465984 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @embedding_norm(
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from func.call"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from func.call"}
// V100: }) {footprint = 49280 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.30[0-9]*E-5}} : f64{{.*}}seconds_apart = {{7\.56[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[4, 4, 768]>, traffic_after = 50868224 : i64, traffic_before = 504246272 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @embedding_norm(
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from func.call"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from func.call"}
// H100: }) {footprint = 49280 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.39[0-9]*E-5}} : f64{{.*}}seconds_apart = {{2\.33[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 1, 768]>, traffic_after = 50868224 : i64, traffic_before = 504246272 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map5 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func private @external_0(tensor<30522x768xf32>, tensor<64x128xi64>) -> tensor<64x128xi64> attributes {magweld.external = "checked_index_default"}
  func.func private @external_1(tensor<2x768xf32>, tensor<64x128xi64>) -> tensor<64x128xi64> attributes {magweld.external = "checked_index_default_1"}
  func.func @embedding_norm(%arg0: tensor<64x128xi64>, %arg1: tensor<64x128xi64>, %arg2: tensor<30522x768xf32>, %arg3: tensor<128x768xf32>, %arg4: tensor<2x768xf32>, %arg5: tensor<768xf32>, %arg6: tensor<768xf32>) -> tensor<64x128x768xf32> {
    %cst = arith.constant 7.680000e+02 : f32
    %cst_0 = arith.constant 9.9999999999999998E-13 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %c2_i64 = arith.constant 2 : i64
    %c30522_i64 = arith.constant 30522 : i64
    %c0_i64 = arith.constant 0 : i64
    %0 = call @external_0(%arg2, %arg0) : (tensor<30522x768xf32>, tensor<64x128xi64>) -> tensor<64x128xi64>
    %1 = tensor.empty() : tensor<64x128x768xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<64x128xi64>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: i64, %out: f32):
      %20 = arith.cmpi slt, %in, %c0_i64 : i64
      %21 = arith.addi %in, %c30522_i64 : i64
      %22 = arith.select %20, %21, %in : i64
      %23 = arith.index_cast %22 : i64 to index
      %24 = linalg.index 2 : index
      %extracted = tensor.extract %arg2[%23, %24] : tensor<30522x768xf32>
      linalg.yield %extracted : f32
    } -> tensor<64x128x768xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %arg3 : tensor<64x128x768xf32>, tensor<128x768xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.addf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %4 = call @external_1(%arg4, %arg1) : (tensor<2x768xf32>, tensor<64x128xi64>) -> tensor<64x128xi64>
    %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<64x128xi64>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: i64, %out: f32):
      %20 = arith.cmpi slt, %in, %c0_i64 : i64
      %21 = arith.addi %in, %c2_i64 : i64
      %22 = arith.select %20, %21, %in : i64
      %23 = arith.index_cast %22 : i64 to index
      %24 = linalg.index 2 : index
      %extracted = tensor.extract %arg4[%23, %24] : tensor<2x768xf32>
      linalg.yield %extracted : f32
    } -> tensor<64x128x768xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %5 : tensor<64x128x768xf32>, tensor<64x128x768xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.addf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %7 = tensor.empty() : tensor<64x128xf32>
    %8 = linalg.fill ins(%cst_1 : f32) outs(%7 : tensor<64x128xf32>) -> tensor<64x128xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<64x128x768xf32>) outs(%8 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<64x128xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<64x128xf32>) outs(%7 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.divf %in, %cst : f32
      linalg.yield %20 : f32
    } -> tensor<64x128xf32>
    %expanded = tensor.expand_shape %10 [[0], [1, 2]] output_shape [64, 128, 1] : tensor<64x128xf32> into tensor<64x128x1xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %expanded : tensor<64x128x768xf32>, tensor<64x128x1xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.subf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11, %11 : tensor<64x128x768xf32>, tensor<64x128x768xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.mulf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %13 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "reduction"]} ins(%12 : tensor<64x128x768xf32>) outs(%8 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<64x128xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<64x128xf32>) outs(%7 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.divf %in, %cst : f32
      linalg.yield %20 : f32
    } -> tensor<64x128xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<64x128xf32>) outs(%7 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.truncf %cst_0 : f64 to f32
      %21 = arith.addf %in, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<64x128xf32>
    %16 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<64x128xf32>) outs(%7 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = math.rsqrt %in : f32
      linalg.yield %20 : f32
    } -> tensor<64x128xf32>
    %expanded_2 = tensor.expand_shape %16 [[0], [1, 2]] output_shape [64, 128, 1] : tensor<64x128xf32> into tensor<64x128x1xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11, %expanded_2 : tensor<64x128x768xf32>, tensor<64x128x1xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.mulf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17, %arg5 : tensor<64x128x768xf32>, tensor<768xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.mulf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    %19 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %arg6 : tensor<64x128x768xf32>, tensor<768xf32>) outs(%1 : tensor<64x128x768xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %20 = arith.addf %in, %in_3 : f32
      linalg.yield %20 : f32
    } -> tensor<64x128x768xf32>
    return %19 : tensor<64x128x768xf32>
  }
}
