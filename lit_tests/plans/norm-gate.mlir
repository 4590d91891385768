// norm-gate: norm, product, halo, gate.
// At least 536874496 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @norm_gate(
// V100: }) {footprint = 51200 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00143[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00767[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 32, 1, 256]>, traffic_after = 805453824 : i64, traffic_before = 5301731584 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 139136 bytes needed in shared, 98304 there; other tiles: recompute, 2.31 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 84352 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00166[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00450[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 16, 16]>, traffic_after = 805388288 : i64, traffic_before = 2684355840 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @norm_gate(
// H100: }) {footprint = 139136 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{7\.23[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00334[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 16, 16]>, traffic_after = 536874496 : i64, traffic_before = 7985958400 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
module {
  func.func @norm_gate(%arg0: tensor<64x16x256x256xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16xf32>, %arg3: tensor<32x16x1x1xf32>, %arg4: tensor<32xf32>, %arg5: tensor<32x1x3x3xf32>, %arg6: tensor<32xf32>) -> tensor<64x16x256x256xf32> {
    %cst = arith.constant 1.600000e+01 : f32
    %cst_0 = arith.constant 9.9999999999999995E-7 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x256x256xf32>
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<64x256x256xf32>) -> tensor<64x256x256xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%arg0 : tensor<64x16x256x256xf32>) outs(%1 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.addf %in, %out : f32
      linalg.yield %22 : f32
    } -> tensor<64x256x256xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<64x256x256xf32>) outs(%0 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.divf %in, %cst : f32
      linalg.yield %22 : f32
    } -> tensor<64x256x256xf32>
    %expanded = tensor.expand_shape %3 [[0], [1, 2], [3]] output_shape [64, 1, 256, 256] : tensor<64x256x256xf32> into tensor<64x1x256x256xf32>
    %4 = tensor.empty() : tensor<64x16x256x256xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %expanded : tensor<64x16x256x256xf32>, tensor<64x1x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.subf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %5 : tensor<64x16x256x256xf32>, tensor<64x16x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.mulf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%6 : tensor<64x16x256x256xf32>) outs(%1 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.addf %in, %out : f32
      linalg.yield %22 : f32
    } -> tensor<64x256x256xf32>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<64x256x256xf32>) outs(%0 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.divf %in, %cst : f32
      linalg.yield %22 : f32
    } -> tensor<64x256x256xf32>
    %expanded_2 = tensor.expand_shape %8 [[0], [1, 2], [3]] output_shape [64, 1, 256, 256] : tensor<64x256x256xf32> into tensor<64x1x256x256xf32>
    %9 = tensor.empty() : tensor<64x1x256x256xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_2 : tensor<64x1x256x256xf32>) outs(%9 : tensor<64x1x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.truncf %cst_0 : f64 to f32
      %23 = arith.addf %in, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<64x1x256x256xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<64x1x256x256xf32>) outs(%9 : tensor<64x1x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = math.rsqrt %in : f32
      linalg.yield %22 : f32
    } -> tensor<64x1x256x256xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %11 : tensor<64x16x256x256xf32>, tensor<64x1x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.mulf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    %expanded_3 = tensor.expand_shape %arg1 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_3 : tensor<64x16x256x256xf32>, tensor<1x16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.mulf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    %expanded_4 = tensor.expand_shape %arg2 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %expanded_4 : tensor<64x16x256x256xf32>, tensor<1x16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.addf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    %15 = tensor.empty() : tensor<64x32x256x256xf32>
    %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<64x32x256x256xf32>) -> tensor<64x32x256x256xf32>
    %17 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%14, %arg3 : tensor<64x16x256x256xf32>, tensor<32x16x1x1xf32>) outs(%16 : tensor<64x32x256x256xf32>) -> tensor<64x32x256x256xf32>
    %expanded_5 = tensor.expand_shape %arg4 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_5 : tensor<64x32x256x256xf32>, tensor<32x1x1xf32>) outs(%15 : tensor<64x32x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.addf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x32x256x256xf32>
    %padded = tensor.pad %18 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst_1 : f32
    } : tensor<64x32x256x256xf32> to tensor<64x32x258x258xf32>
    %collapsed = tensor.collapse_shape %arg5 [[0, 1], [2], [3]] : tensor<32x1x3x3xf32> into tensor<32x3x3xf32>
    %19 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %collapsed : tensor<64x32x258x258xf32>, tensor<32x3x3xf32>) outs(%16 : tensor<64x32x256x256xf32>) -> tensor<64x32x256x256xf32>
    %expanded_6 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %expanded_6 : tensor<64x32x256x256xf32>, tensor<32x1x1xf32>) outs(%15 : tensor<64x32x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.addf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x32x256x256xf32>
    %extracted_slice = tensor.extract_slice %20[0, 0, 0, 0] [64, 16, 256, 256] [1, 1, 1, 1] : tensor<64x32x256x256xf32> to tensor<64x16x256x256xf32>
    %extracted_slice_7 = tensor.extract_slice %20[0, 16, 0, 0] [64, 16, 256, 256] [1, 1, 1, 1] : tensor<64x32x256x256xf32> to tensor<64x16x256x256xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice, %extracted_slice_7 : tensor<64x16x256x256xf32>, tensor<64x16x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %22 = arith.mulf %in, %in_8 : f32
      linalg.yield %22 : f32
    } -> tensor<64x16x256x256xf32>
    return %21 : tensor<64x16x256x256xf32>
  }
}
