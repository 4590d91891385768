// gated-feed-forward: a chain of seven operators with a split.
// At least 536874368 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @gated_feed_forward(
// V100: }) {footprint = 83968 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00127[0-9]*}} : f64{{.*}}seconds_apart = {{0\.0122[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 1, 256]>, traffic_after = 537092096 : i64, traffic_before = 8254538112 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @gated_feed_forward(
// H100: }) {footprint = 167936 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.83[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00332[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[2, 16, 1, 256]>, traffic_after = 536874368 : i64, traffic_before = 8254393728 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
module {
  func.func @gated_feed_forward(%arg0: tensor<64x16x256x256xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16xf32>, %arg3: tensor<32x16x1x1xf32>, %arg4: tensor<32xf32>, %arg5: tensor<16x16x1x1xf32>, %arg6: tensor<16xf32>, %arg7: tensor<1x16x1x1xf32>) -> tensor<64x16x256x256xf32> {
    %cst = arith.constant 1.600000e+01 : f32
    %cst_0 = arith.constant 9.9999999999999995E-7 : f64
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x256x256xf32>
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<64x256x256xf32>) -> tensor<64x256x256xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%arg0 : tensor<64x16x256x256xf32>) outs(%1 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.addf %in, %out : f32
      linalg.yield %25 : f32
    } -> tensor<64x256x256xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<64x256x256xf32>) outs(%0 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.divf %in, %cst : f32
      linalg.yield %25 : f32
    } -> tensor<64x256x256xf32>
    %expanded = tensor.expand_shape %3 [[0], [1, 2], [3]] output_shape [64, 1, 256, 256] : tensor<64x256x256xf32> into tensor<64x1x256x256xf32>
    %4 = tensor.empty() : tensor<64x16x256x256xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %expanded : tensor<64x16x256x256xf32>, tensor<64x1x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.subf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %5 : tensor<64x16x256x256xf32>, tensor<64x16x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.mulf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%6 : tensor<64x16x256x256xf32>) outs(%1 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.addf %in, %out : f32
      linalg.yield %25 : f32
    } -> tensor<64x256x256xf32>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<64x256x256xf32>) outs(%0 : tensor<64x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.divf %in, %cst : f32
      linalg.yield %25 : f32
    } -> tensor<64x256x256xf32>
    %expanded_2 = tensor.expand_shape %8 [[0], [1, 2], [3]] output_shape [64, 1, 256, 256] : tensor<64x256x256xf32> into tensor<64x1x256x256xf32>
    %9 = tensor.empty() : tensor<64x1x256x256xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_2 : tensor<64x1x256x256xf32>) outs(%9 : tensor<64x1x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.truncf %cst_0 : f64 to f32
      %26 = arith.addf %in, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<64x1x256x256xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<64x1x256x256xf32>) outs(%9 : tensor<64x1x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = math.rsqrt %in : f32
      linalg.yield %25 : f32
    } -> tensor<64x1x256x256xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %11 : tensor<64x16x256x256xf32>, tensor<64x1x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.mulf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %expanded_3 = tensor.expand_shape %arg1 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_3 : tensor<64x16x256x256xf32>, tensor<1x16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.mulf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %expanded_4 = tensor.expand_shape %arg2 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %expanded_4 : tensor<64x16x256x256xf32>, tensor<1x16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.addf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %15 = tensor.empty() : tensor<64x32x256x256xf32>
    %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<64x32x256x256xf32>) -> tensor<64x32x256x256xf32>
    %17 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%14, %arg3 : tensor<64x16x256x256xf32>, tensor<32x16x1x1xf32>) outs(%16 : tensor<64x32x256x256xf32>) -> tensor<64x32x256x256xf32>
    %expanded_5 = tensor.expand_shape %arg4 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_5 : tensor<64x32x256x256xf32>, tensor<32x1x1xf32>) outs(%15 : tensor<64x32x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.addf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x32x256x256xf32>
    %extracted_slice = tensor.extract_slice %18[0, 0, 0, 0] [64, 16, 256, 256] [1, 1, 1, 1] : tensor<64x32x256x256xf32> to tensor<64x16x256x256xf32>
    %extracted_slice_6 = tensor.extract_slice %18[0, 16, 0, 0] [64, 16, 256, 256] [1, 1, 1, 1] : tensor<64x32x256x256xf32> to tensor<64x16x256x256xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice, %extracted_slice_6 : tensor<64x16x256x256xf32>, tensor<64x16x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.mulf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %20 = linalg.fill ins(%cst_1 : f32) outs(%4 : tensor<64x16x256x256xf32>) -> tensor<64x16x256x256xf32>
    %21 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%19, %arg5 : tensor<64x16x256x256xf32>, tensor<16x16x1x1xf32>) outs(%20 : tensor<64x16x256x256xf32>) -> tensor<64x16x256x256xf32>
    %expanded_7 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_7 : tensor<64x16x256x256xf32>, tensor<16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.addf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %arg7 : tensor<64x16x256x256xf32>, tensor<1x16x1x1xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.mulf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %23 : tensor<64x16x256x256xf32>, tensor<64x16x256x256xf32>) outs(%4 : tensor<64x16x256x256xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %25 = arith.addf %in, %in_8 : f32
      linalg.yield %25 : f32
    } -> tensor<64x16x256x256xf32>
    return %24 : tensor<64x16x256x256xf32>
  }
}
