// conformer-convolution: a long halo and transposes.
// At least 137441280 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @conformer_convolution(
// V100: }) {footprint = 32896 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.94[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00135[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 512, 16]>, traffic_after = 134221824 : i64, traffic_before = 941101056 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 5.043e-03 s together, 4.014e-03 s apart"}
// V100: }) {copy_stages = 2 : i64, footprint = 81920 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00381[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00381[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 256]>, traffic_after = 335544320 : i64, traffic_before = 335544320 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "more-traffic: 687898624 bytes together, 603983872 bytes apart"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.78[0-9]*E-4}} : f64{{.*}}seconds_apart = {{3\.78[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 268439552 : i64, traffic_before = 268439552 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_12 is read outside of the group and its tiles are staged"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.90[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.90[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134217728 : i64, traffic_before = 134217728 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_12 is read outside of the group and its tiles are staged"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.90[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.90[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134217728 : i64, traffic_before = 134217728 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// V100: }) {footprint = 67520 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.44[0-9]*E-4}} : f64{{.*}}seconds_apart = {{8\.51[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 1, 512, 1]>, traffic_after = 201580544 : i64, traffic_before = 469825536 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.99[0-9]*E-4}} : f64{{.*}}seconds_apart = {{8\.64[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134221824 : i64, traffic_before = 603983872 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 2.118e-03 s together, 2.092e-03 s apart"}
// V100: }) {copy_stages = 2 : i64, footprint = 81920 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00189[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00189[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 256]>, traffic_after = 135266304 : i64, traffic_before = 135266304 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "more-traffic: 343949312 bytes together, 269486080 bytes apart"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.90[0-9]*E-4}} : f64{{.*}}seconds_apart = {{1\.90[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134219776 : i64, traffic_before = 134219776 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @conformer_convolution(
// H100: }) {footprint = 32896 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.39[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.89[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 512, 16]>, traffic_after = 134221824 : i64, traffic_before = 941101056 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.195e-03 s together, 1.042e-03 s apart"}
// H100: }) {copy_stages = 4 : i64, footprint = 229376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{9\.88[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00108[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 64, 256]>, traffic_after = 203427840 : i64, traffic_before = 471863296 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_12 is read outside of the group and its tiles are staged"}
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.32[0-9]*E-5}} : f64{{.*}}seconds_apart = {{5\.32[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134217728 : i64, traffic_before = 134217728 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "other-readers: generic_12 is read outside of the group and its tiles are staged"}
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.32[0-9]*E-5}} : f64{{.*}}seconds_apart = {{5\.32[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 16, 256]>, traffic_after = 134217728 : i64, traffic_before = 134217728 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.expand_shape"}
// H100: }) {footprint = 67520 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.67[0-9]*E-4}} : f64{{.*}}seconds_apart = {{2\.79[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[16, 1, 512, 1]>, traffic_after = 201580544 : i64, traffic_before = 469825536 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 229376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.13[0-9]*E-4}} : f64{{.*}}seconds_apart = {{7\.91[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[4, 256, 16]>, traffic_after = 135272448 : i64, traffic_before = 873469952 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map4 = affine_map<(d0, d1, d2) -> (d2)>
#map5 = affine_map<(d0, d1, d2) -> (d1, 0)>
#map6 = affine_map<(d0, d1, d2) -> (0, d1, 0)>
module {
  func.func @conformer_convolution(%arg0: tensor<64x512x512xf32>, %arg1: tensor<512xf32>, %arg2: tensor<512xf32>, %arg3: tensor<1024x512x1xf32>, %arg4: tensor<1024xf32>, %arg5: tensor<512x1x31xf32>, %arg6: tensor<512xf32>, %arg7: tensor<512xf32>, %arg8: tensor<512x512x1xf32>, %arg9: tensor<512xf32>) -> tensor<64x512x512xf32> {
    %cst = arith.constant 5.120000e+02 : f32
    %cst_0 = arith.constant 1.000000e-05 : f64
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x512xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<64x512xf32>) -> tensor<64x512xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<64x512x512xf32>) outs(%1 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.addf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<64x512xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<64x512xf32>) outs(%0 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.divf %in, %cst : f32
      linalg.yield %30 : f32
    } -> tensor<64x512xf32>
    %expanded = tensor.expand_shape %3 [[0], [1, 2]] output_shape [64, 512, 1] : tensor<64x512xf32> into tensor<64x512x1xf32>
    %4 = tensor.empty() : tensor<64x512x512xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %expanded : tensor<64x512x512xf32>, tensor<64x512x1xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.subf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %5 : tensor<64x512x512xf32>, tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<64x512x512xf32>) outs(%1 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.addf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<64x512xf32>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<64x512xf32>) outs(%0 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.divf %in, %cst : f32
      linalg.yield %30 : f32
    } -> tensor<64x512xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<64x512xf32>) outs(%0 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.truncf %cst_0 : f64 to f32
      %31 = arith.addf %in, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<64x512xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<64x512xf32>) outs(%0 : tensor<64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = math.rsqrt %in : f32
      linalg.yield %30 : f32
    } -> tensor<64x512xf32>
    %expanded_3 = tensor.expand_shape %10 [[0], [1, 2]] output_shape [64, 512, 1] : tensor<64x512xf32> into tensor<64x512x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %expanded_3 : tensor<64x512x512xf32>, tensor<64x512x1xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11, %arg1 : tensor<64x512x512xf32>, tensor<512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12, %arg2 : tensor<64x512x512xf32>, tensor<512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.addf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %transposed = linalg.transpose ins(%13 : tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) permutation = [0, 2, 1] 
    %14 = tensor.empty() : tensor<64x1024x512xf32>
    %15 = linalg.fill ins(%cst_2 : f32) outs(%14 : tensor<64x1024x512xf32>) -> tensor<64x1024x512xf32>
    %16 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%transposed, %arg3 : tensor<64x512x512xf32>, tensor<1024x512x1xf32>) outs(%15 : tensor<64x1024x512xf32>) -> tensor<64x1024x512xf32>
    %expanded_4 = tensor.expand_shape %arg4 [[0, 1]] output_shape [1024, 1] : tensor<1024xf32> into tensor<1024x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %expanded_4 : tensor<64x1024x512xf32>, tensor<1024x1xf32>) outs(%14 : tensor<64x1024x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.addf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x1024x512xf32>
    %extracted_slice = tensor.extract_slice %17[0, 0, 0] [64, 512, 512] [1, 1, 1] : tensor<64x1024x512xf32> to tensor<64x512x512xf32>
    %extracted_slice_5 = tensor.extract_slice %17[0, 512, 0] [64, 512, 512] [1, 1, 1] : tensor<64x1024x512xf32> to tensor<64x512x512xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice_5 : tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.negf %in : f32
      %31 = math.exp %30 : f32
      %32 = arith.addf %31, %cst_1 : f32
      %33 = arith.divf %cst_1, %32 : f32
      linalg.yield %33 : f32
    } -> tensor<64x512x512xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice, %18 : tensor<64x512x512xf32>, tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %expanded_6 = tensor.expand_shape %19 [[0], [1], [2, 3]] output_shape [64, 512, 512, 1] : tensor<64x512x512xf32> into tensor<64x512x512x1xf32>
    %expanded_7 = tensor.expand_shape %arg5 [[0], [1], [2, 3]] output_shape [512, 1, 31, 1] : tensor<512x1x31xf32> into tensor<512x1x31x1xf32>
    %padded = tensor.pad %expanded_6 low[0, 0, 15, 0] high[0, 0, 15, 0] {
    ^bb0(%arg10: index, %arg11: index, %arg12: index, %arg13: index):
      tensor.yield %cst_2 : f32
    } : tensor<64x512x512x1xf32> to tensor<64x512x542x1xf32>
    %20 = tensor.empty() : tensor<64x512x512x1xf32>
    %21 = linalg.fill ins(%cst_2 : f32) outs(%20 : tensor<64x512x512x1xf32>) -> tensor<64x512x512x1xf32>
    %collapsed = tensor.collapse_shape %expanded_7 [[0, 1], [2], [3]] : tensor<512x1x31x1xf32> into tensor<512x31x1xf32>
    %22 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %collapsed : tensor<64x512x542x1xf32>, tensor<512x31x1xf32>) outs(%21 : tensor<64x512x512x1xf32>) -> tensor<64x512x512x1xf32>
    %collapsed_8 = tensor.collapse_shape %22 [[0], [1], [2, 3]] : tensor<64x512x512x1xf32> into tensor<64x512x512xf32>
    %expanded_9 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [1, 512, 1] : tensor<512xf32> into tensor<1x512x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_8, %expanded_9 : tensor<64x512x512xf32>, tensor<1x512x1xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %expanded_10 = tensor.expand_shape %arg7 [[0, 1, 2]] output_shape [1, 512, 1] : tensor<512xf32> into tensor<1x512x1xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %expanded_10 : tensor<64x512x512xf32>, tensor<1x512x1xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.addf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24 : tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.negf %in : f32
      %31 = math.exp %30 : f32
      %32 = arith.addf %31, %cst_1 : f32
      %33 = arith.divf %cst_1, %32 : f32
      linalg.yield %33 : f32
    } -> tensor<64x512x512xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %25 : tensor<64x512x512xf32>, tensor<64x512x512xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.mulf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    %27 = linalg.fill ins(%cst_2 : f32) outs(%4 : tensor<64x512x512xf32>) -> tensor<64x512x512xf32>
    %28 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%26, %arg8 : tensor<64x512x512xf32>, tensor<512x512x1xf32>) outs(%27 : tensor<64x512x512xf32>) -> tensor<64x512x512xf32>
    %expanded_11 = tensor.expand_shape %arg9 [[0, 1]] output_shape [512, 1] : tensor<512xf32> into tensor<512x1xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%28, %expanded_11 : tensor<64x512x512xf32>, tensor<512x1xf32>) outs(%4 : tensor<64x512x512xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %30 = arith.addf %in, %in_12 : f32
      linalg.yield %30 : f32
    } -> tensor<64x512x512xf32>
    return %29 : tensor<64x512x512xf32>
  }
}
