// channel-attention: reductions over the long axis, two phases.
// At least 50331652 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @channel_attention(
// V100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.81[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.88[0-9]*E-5}} : f64{{.*}}seconds_apart = {{7\.70[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 65536]>, traffic_after = 25166016 : i64, traffic_before = 50331840 : i64
// V100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.09[0-9]*E-5}} : f64{{.*}}seconds_apart = {{6\.81[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.83[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.14[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1024, 48]>, traffic_after = 25166016 : i64, traffic_before = 75497664 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 3648 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{2\.02[0-9]*E-4}} : f64{{.*}}seconds_apart = {{2\.05[0-9]*E-4}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 12, 12]>, traffic_after = 100672516 : i64, traffic_before = 100690948 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "more-traffic: 163587076 bytes together, 100765828 bytes apart"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "more-traffic: 163587076 bytes together, 100765828 bytes apart"}
// V100: }) {footprint = 256 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.05[0-9]*E-6}} : f64{{.*}}seconds_apart = {{1\.82[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48]>, traffic_after = 18432 : i64, traffic_before = 74880 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// V100: }) {footprint = 29184 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{5\.06[0-9]*E-5}} : f64{{.*}}seconds_apart = {{5\.06[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 48, 256]>, traffic_after = 25175040 : i64, traffic_before = 25175040 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @channel_attention(
// H100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.93[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.24[0-9]*E-5}} : f64{{.*}}seconds_apart = {{2\.47[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 2, 16384]>, traffic_after = 25166016 : i64, traffic_before = 50331840 : i64
// H100: }) {footprint = 128 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.03[0-9]*E-6}} : f64{{.*}}seconds_apart = {{2\.93[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 1]>, traffic_after = 12583104 : i64, traffic_before = 37749984 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 0 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.23[0-9]*E-5}} : f64{{.*}}seconds_apart = {{3\.69[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 256, 48]>, traffic_after = 25166016 : i64, traffic_before = 75497664 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 1984 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.75[0-9]*E-5}} : f64{{.*}}seconds_apart = {{4\.06[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 6, 8]>, traffic_after = 25175044 : i64, traffic_before = 25193476 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 8.642e-05 s together, 4.063e-05 s apart"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 8.642e-05 s together, 4.063e-05 s apart"}
// H100: }) {footprint = 256 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{3\.02[0-9]*E-6}} : f64{{.*}}seconds_apart = {{1\.81[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 1, 48]>, traffic_after = 18432 : i64, traffic_before = 74880 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "no-operator: it comes from tensor.collapse_shape"}
// H100: }) {footprint = 29184 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{1\.47[0-9]*E-5}} : f64{{.*}}seconds_apart = {{1\.47[0-9]*E-5}} : f64{{.*}}tile = #tile_graph.tile<[1, 48, 256]>, traffic_after = 25175040 : i64, traffic_before = 25175040 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @channel_attention(%arg0: tensor<1x1x48x65536xf32>, %arg1: tensor<1x1x48x65536xf32>, %arg2: tensor<1x1x48x65536xf32>, %arg3: tensor<1x1x1xf32>) -> tensor<1x1x48x65536xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 9.99999996E-13 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x1x48x65536xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.mulf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x65536xf32>
    %2 = tensor.empty() : tensor<1x1x48xf32>
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%1 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.addf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48xf32>
    %5 = tensor.empty() : tensor<1x1x48x1xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x1x48xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = math.sqrt %in : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x1xf32>
    %7 = tensor.empty() : tensor<1x1x48x1xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x1x48x1xf32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %35 = arith.cmpf olt, %in, %cst_0 : f32
      linalg.yield %35 : i1
    } -> tensor<1x1x48x1xi1>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %6 : tensor<1x1x48x1xi1>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_8: f32, %out: f32):
      %35 = arith.select %in, %cst_0, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed = tensor.collapse_shape %9 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x48x65536xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %10 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.divf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x65536xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %arg1 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.mulf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x65536xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<1x1x48x65536xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.addf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<1x1x48xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = math.sqrt %in : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<1x1x48x1xf32>) outs(%7 : tensor<1x1x48x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %35 = arith.cmpf olt, %in, %cst_0 : f32
      linalg.yield %35 : i1
    } -> tensor<1x1x48x1xi1>
    %16 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %14 : tensor<1x1x48x1xi1>, tensor<1x1x48x1xf32>) outs(%5 : tensor<1x1x48x1xf32>) {
    ^bb0(%in: i1, %in_8: f32, %out: f32):
      %35 = arith.select %in, %cst_0, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x1xf32>
    %collapsed_3 = tensor.collapse_shape %16 [[0], [1], [2, 3]] : tensor<1x1x48x1xf32> into tensor<1x1x48xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_3 : tensor<1x1x48xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x48x65536xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1, %17 : tensor<1x1x48x65536xf32>, tensor<1x1x48x65536xf32>) outs(%0 : tensor<1x1x48x65536xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.divf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x65536xf32>
    %19 = tensor.empty() : tensor<1x1x65536x48xf32>
    %transposed = linalg.transpose ins(%18 : tensor<1x1x48x65536xf32>) outs(%19 : tensor<1x1x65536x48xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_4 = tensor.collapse_shape %11 [[0], [1, 2], [3]] : tensor<1x1x48x65536xf32> into tensor<1x48x65536xf32>
    %collapsed_5 = tensor.collapse_shape %transposed [[0], [1, 2], [3]] : tensor<1x1x65536x48xf32> into tensor<1x65536x48xf32>
    %20 = tensor.empty() : tensor<1x48x48xf32>
    %21 = linalg.fill ins(%cst_2 : f32) outs(%20 : tensor<1x48x48xf32>) -> tensor<1x48x48xf32>
    %22 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<1x48x65536xf32>, tensor<1x65536x48xf32>) outs(%21 : tensor<1x48x48xf32>) -> tensor<1x48x48xf32>
    %23 = tensor.empty() : tensor<1x1x48x48xf32>
    %24 = linalg.generic {indexing_maps = [#map2, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %arg3 : tensor<1x48x48xf32>, tensor<1x1x1xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.mulf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x48xf32>
    %25 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x1x48xf32>) -> tensor<1x1x48xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x1x48x48xf32>) outs(%25 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.maximumf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %26 : tensor<1x1x48x48xf32>, tensor<1x1x48xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.subf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x48xf32>
    %28 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<1x1x48x48xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = math.exp %in : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x48xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<1x1x48x48xf32>) outs(%3 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.addf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48xf32>
    %30 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29 : tensor<1x1x48xf32>) outs(%2 : tensor<1x1x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.divf %cst, %in : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %30 : tensor<1x1x48x48xf32>, tensor<1x1x48xf32>) outs(%23 : tensor<1x1x48x48xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %35 = arith.mulf %in, %in_8 : f32
      linalg.yield %35 : f32
    } -> tensor<1x1x48x48xf32>
    %collapsed_6 = tensor.collapse_shape %31 [[0], [1, 2], [3]] : tensor<1x1x48x48xf32> into tensor<1x48x48xf32>
    %collapsed_7 = tensor.collapse_shape %arg2 [[0], [1, 2], [3]] : tensor<1x1x48x65536xf32> into tensor<1x48x65536xf32>
    %32 = tensor.empty() : tensor<1x48x65536xf32>
    %33 = linalg.fill ins(%cst_2 : f32) outs(%32 : tensor<1x48x65536xf32>) -> tensor<1x48x65536xf32>
    %34 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<1x48x48xf32>, tensor<1x48x65536xf32>) outs(%33 : tensor<1x48x65536xf32>) -> tensor<1x48x65536xf32>
    %expanded = tensor.expand_shape %34 [[0], [1, 2], [3]] output_shape [1, 1, 48, 65536] : tensor<1x48x65536xf32> into tensor<1x1x48x65536xf32>
    return %expanded : tensor<1x1x48x65536xf32>
  }
}
