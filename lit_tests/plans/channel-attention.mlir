// channel-attention: reductions over the long axis, two phases.
// At least 50331652 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @channel_attention(
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.81[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.81[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 98304 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{6\.21[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.28[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 24, 24]>, traffic_after = 26345856 : i64, traffic_before = 76677504 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 14876672 bytes needed in shared, 98304 there; other tiles: recompute, 1.27 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// V100: }) {footprint = 832 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{4\.77[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.60[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 2, 48]>, traffic_after = 1188868 : i64, traffic_before = 1282180 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 98560 bytes needed in shared, 98304 there; other tiles: recompute, 1.27 times the arithmetic, 1.25 allowed; not streamed, needs-whole: generic_20 needs generic_19 whole"}
// V100: }) {footprint = 29184 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.06[0-9]*E-5}} : f64{{.*}}seconds_apart = {{5\.06[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 48, 256]>, traffic_after = 25175040 : i64, traffic_before = 25175040 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @channel_attention(
// H100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.93[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.93[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 196608 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.59[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.95[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48, 48]>, traffic_after = 26345856 : i64, traffic_before = 76677504 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 14876672 bytes needed in shared, 232448 there; other tiles: recompute, 1.27 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// H100: }) {footprint = 1216 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.59[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.46[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 3, 48]>, traffic_after = 1188868 : i64, traffic_before = 1282180 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 2.071e-05 s together, 1.831e-05 s apart"}
// H100: }) {footprint = 29184 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.47[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.47[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 48, 256]>, traffic_after = 25175040 : i64, traffic_before = 25175040 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
  func.func @channel_attention(%arg0: tensor<1x1x48x65536xf32>, %arg1: tensor<1x1x48x65536xf32>, %arg2: tensor<1x1x48x65536xf32>, %arg3: tensor<1x1x1xf32>) -> tensor<1x1x48x65536xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 9.99999996E-13 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x1x48x65536xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x65536xf32>
    %2 = tensor.empty() : tensor<1x1x48xf32>
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%1 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.addf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48xf32>
    %5 = tensor.empty() : tensor<1x1x48x1xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x1x48xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = math.sqrt %in : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x1xf32>
    %7 = tensor.empty() : tensor<1x1x48x1xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x1x48x1xf32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %30 = arith.cmpf olt, %in, %cst_0 : f32
      linalg.yield %30 : i1
    } -> tensor<1x1x48x1xi1>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %6 : tensor<1x1x48x1xi1>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_4: f32, %out: f32):
      %30 = arith.select %in, %cst_0, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed = tensor.collapse_shape %9 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %collapsed : tensor<1x1x48x65536xf32>, tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.divf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x65536xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %arg1 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x65536xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.addf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48xf32>
    %13 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<1x1x48xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = math.sqrt %in : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<1x1x48x1xf32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %30 = arith.cmpf olt, %in, %cst_0 : f32
      linalg.yield %30 : i1
    } -> tensor<1x1x48x1xi1>
    %15 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %13 : tensor<1x1x48x1xi1>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_4: f32, %out: f32):
      %30 = arith.select %in, %cst_0, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed_3 = tensor.collapse_shape %15 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %collapsed_3 : tensor<1x1x48x65536xf32>, tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.divf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x65536xf32>
    %17 = tensor.empty() : tensor<1x1x48x48xf32>
    %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<1x1x48x48xf32>) -> tensor<1x1x48x48xf32>
    %19 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%10, %16 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%18 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      %31 = arith.addf %out, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<1x1x48x48xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %arg3 : tensor<1x1x48x48xf32>, tensor<1x1x1xf32>) outs(%17 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x48xf32>
    %21 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<1x1x48x48xf32>) outs(%21 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.maximumf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %22 : tensor<1x1x48x48xf32>, tensor<1x1x48xf32>) outs(%17 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.subf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x48xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<1x1x48x48xf32>) outs(%17 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = math.exp %in : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x48xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x1x48x48xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.addf %in, %out : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48xf32>
    %26 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25 : tensor<1x1x48xf32>) outs(%2 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %30 = arith.divf %cst, %in : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %26 : tensor<1x1x48x48xf32>, tensor<1x1x48xf32>) outs(%17 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      linalg.yield %30 : f32
    } -> tensor<1x1x48x48xf32>
    %28 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<1x1x48x65536xf32>) -> tensor<1x1x48x65536xf32>
    %29 = linalg.generic {indexing_maps = [#map2, #map7, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%27, %arg2 : tensor<1x1x48x48xf32>, tensor<1x1x48x65536xf32>) outs(%28 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %30 = arith.mulf %in, %in_4 : f32
      %31 = arith.addf %out, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<1x1x48x65536xf32>
    return %29 : tensor<1x1x48x65536xf32>
  }
}
