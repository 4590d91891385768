// channel-attention: reductions over the long axis, two phases.
// At least 50331652 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @channel_attention(
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.79[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.79[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 49152 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.61[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.40[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48, 48]>, traffic_after = 29884800 : i64, traffic_before = 80216448 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 6586368 bytes needed in shared, 98304 there; other tiles: recompute, 1.27 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{9\.65[0-9]*E-6}} : f64{{.*}}seconds_apart = {{1\.27[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 16]>, traffic_after = 4727812 : i64, traffic_before = 4746244 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 393472 bytes needed in shared, 98304 there; other tiles: recompute, 1.25 times the arithmetic, 1.25 allowed; not streamed, needs-whole: generic_20 needs generic_19 whole"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 393472 bytes needed in shared, 98304 there; other tiles: recompute, 1.25 times the arithmetic, 1.25 allowed; not streamed, needs-whole: generic_20 needs generic_19 whole"}
// V100: }) {copy_stages = 2 : i64, footprint = 43200 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.91[0-9]*E-5}} : f64{{.*}}seconds_apart = {{7\.62[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 48, 128]>, traffic_after = 25175040 : i64, traffic_before = 25249920 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @channel_attention(
// H100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.94[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.94[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 196608 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.89[0-9]*E-5}} : f64{{.*}}seconds_apart = {{4\.30[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48, 48]>, traffic_after = 26345856 : i64, traffic_before = 76677504 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 14876672 bytes needed in shared, 232448 there; other tiles: recompute, 1.27 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// H100: }) {footprint = 448 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.48[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.49[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48]>, traffic_after = 1188868 : i64, traffic_before = 1282180 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 2.790e-05 s together, 2.075e-05 s apart"}
// H100: }) {copy_stages = 2 : i64, footprint = 58368 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.72[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.72[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 48, 256]>, traffic_after = 25175040 : i64, traffic_before = 25175040 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> ()>
#map3 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map5 = affine_map<(d0, d1, d2) -> ()>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @channel_attention(%arg0: tensor<1x1x48x65536xf32>, %arg1: tensor<1x1x48x65536xf32>, %arg2: tensor<1x1x48x65536xf32>, %arg3: tensor<1x1x1xf32>) -> tensor<1x1x48x65536xf32> {
    %cst = arith.constant dense<9.99999996E-13> : tensor<f32>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x1x48x65536xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.mulf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x65536xf32>
    %2 = tensor.empty() : tensor<1x1x48xf32>
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%1 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.addf %in, %out : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48xf32>
    %expanded = tensor.expand_shape %4 [[0], [1], [2, 3]] output_shape [1, 1, 48, 1] : tensor<1x1x48xf32> into tensor<1x1x48x1xf32>
    %5 = tensor.empty() : tensor<1x1x48x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = math.sqrt %in : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x1xf32>
    %7 = tensor.empty() : tensor<1x1x48x1xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %cst : tensor<1x1x48x1xf32>, tensor<f32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %in_13: f32, %out: i1):
      %37 = arith.cmpf olt, %in, %in_13 : f32
      linalg.yield %37 : i1
    } -> tensor<1x1x48x1xi1>
    %9 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %cst, %6 : tensor<1x1x48x1xi1>, tensor<f32>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %37 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed = tensor.collapse_shape %9 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x48x65536xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %10 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.divf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x65536xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %arg1 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.mulf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x65536xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.addf %in, %out : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48xf32>
    %expanded_3 = tensor.expand_shape %13 [[0], [1], [2, 3]] output_shape [1, 1, 48, 1] : tensor<1x1x48xf32> into tensor<1x1x48x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_3 : tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = math.sqrt %in : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %cst : tensor<1x1x48x1xf32>, tensor<f32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %in_13: f32, %out: i1):
      %37 = arith.cmpf olt, %in, %in_13 : f32
      linalg.yield %37 : i1
    } -> tensor<1x1x48x1xi1>
    %16 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %cst, %14 : tensor<1x1x48x1xi1>, tensor<f32>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %37 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed_4 = tensor.collapse_shape %16 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x48x65536xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %17 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.divf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x65536xf32>
    %19 = tensor.empty() : tensor<1x1x65536x48xf32>
    %transposed = linalg.transpose ins(%18 : tensor<1x1x48x65536xf32>) outs(%19 : tensor<1x1x65536x48xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_5 = tensor.collapse_shape %11 [[0], [1, 2], [3]] : tensor<1x1x48x65536xf32> into tensor<1x48x65536xf32>
    %collapsed_6 = tensor.collapse_shape %transposed [[0], [1, 2], [3]] : tensor<1x1x65536x48xf32> into tensor<1x65536x48xf32>
    %20 = tensor.empty() : tensor<1x48x48xf32>
    %21 = linalg.fill ins(%cst_2 : f32) outs(%20 : tensor<1x48x48xf32>) -> tensor<1x48x48xf32>
    %22 = linalg.batch_matmul ins(%collapsed_5, %collapsed_6 : tensor<1x48x65536xf32>, tensor<1x65536x48xf32>) outs(%21 : tensor<1x48x48xf32>) -> tensor<1x48x48xf32>
    %expanded_7 = tensor.expand_shape %22 [[0], [1, 2], [3]] output_shape [1, 1, 48, 48] : tensor<1x48x48xf32> into tensor<1x1x48x48xf32>
    %23 = tensor.empty() : tensor<1x1x48x48xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7, %arg3 : tensor<1x1x48x48xf32>, tensor<1x1x1xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.mulf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x48xf32>
    %25 = tensor.empty() : tensor<1x1x48xi64>
    %26 = linalg.fill ins(%c0_i64 : i64) outs(%25 : tensor<1x1x48xi64>) -> tensor<1x1x48xi64>
    %27 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %28:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x1x48x48xf32>) outs(%27, %26 : tensor<1x1x48xf32>, tensor<1x1x48xi64>) {
    ^bb0(%in: f32, %out: f32, %out_13: i64):
      %37 = linalg.index 3 : index
      %38 = arith.index_cast %37 : index to i64
      %39 = arith.maximumf %in, %out : f32
      %40 = arith.cmpf ogt, %in, %out : f32
      %41 = arith.select %40, %38, %out_13 : i64
      linalg.yield %39, %41 : f32, i64
    } -> (tensor<1x1x48xf32>, tensor<1x1x48xi64>)
    %expanded_8 = tensor.expand_shape %28#0 [[0], [1], [2, 3]] output_shape [1, 1, 48, 1] : tensor<1x1x48xf32> into tensor<1x1x48x1xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %expanded_8 : tensor<1x1x48x48xf32>, tensor<1x1x48x1xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.subf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x48xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<1x1x48x48xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = math.exp %in : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x48xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%30 : tensor<1x1x48x48xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.addf %in, %out : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48xf32>
    %32 = linalg.generic {indexing_maps = [#map5, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_0, %31 : tensor<f32>, tensor<1x1x48xf32>) outs(%2 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.divf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48xf32>
    %expanded_9 = tensor.expand_shape %32 [[0], [1], [2, 3]] output_shape [1, 1, 48, 1] : tensor<1x1x48xf32> into tensor<1x1x48x1xf32>
    %33 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30, %expanded_9 : tensor<1x1x48x48xf32>, tensor<1x1x48x1xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %37 = arith.mulf %in, %in_13 : f32
      linalg.yield %37 : f32
    } -> tensor<1x1x48x48xf32>
    %collapsed_10 = tensor.collapse_shape %33 [[0], [1, 2], [3]] : tensor<1x1x48x48xf32> into tensor<1x48x48xf32>
    %collapsed_11 = tensor.collapse_shape %arg2 [[0], [1, 2], [3]] : tensor<1x1x48x65536xf32> into tensor<1x48x65536xf32>
    %34 = tensor.empty() : tensor<1x48x65536xf32>
    %35 = linalg.fill ins(%cst_2 : f32) outs(%34 : tensor<1x48x65536xf32>) -> tensor<1x48x65536xf32>
    %36 = linalg.batch_matmul ins(%collapsed_10, %collapsed_11 : tensor<1x48x48xf32>, tensor<1x48x65536xf32>) outs(%35 : tensor<1x48x65536xf32>) -> tensor<1x48x65536xf32>
    %expanded_12 = tensor.expand_shape %36 [[0], [1, 2], [3]] output_shape [1, 1, 48, 65536] : tensor<1x48x65536xf32> into tensor<1x1x48x65536xf32>
    return %expanded_12 : tensor<1x1x48x65536xf32>
  }
}
