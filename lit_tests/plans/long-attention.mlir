// long-attention: online softmax, streaming.
// At least 67108864 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never},form-tile-graph{device=v100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=h100 library=never},form-tile-graph{device=h100},select-implementation{library=never},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @long_attention(
// V100: }) {footprint = 98304 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00347[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00626[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 128]>, traffic_after = 1107296256 : i64, traffic_before = 3372220416 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 98304 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 98304 there; other tiles: recompute, 15.03 times the arithmetic, 1.25 allowed"}
// V100: }) {footprint = 64 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00304[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00749[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 16, 4096]>, traffic_after = 2147483648 : i64, traffic_before = 5369233408 : i64
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.095e-02 s together, 6.513e-03 s apart"}
// V100: "tile_graph.connect"({{.+}}) {level = "global", refused = "slower: 1.095e-02 s together, 6.513e-03 s apart"}
// V100: }) {footprint = 57856 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00346[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00541[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 64]>, traffic_after = 1107296256 : i64, traffic_before = 2467299328 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @long_attention(
// H100: }) {footprint = 180224 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{8\.50[0-9]*E-4}} : f64{{.*}}seconds_apart = {{0\.00158[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 128, 256]>, traffic_after = 1107296256 : i64, traffic_before = 3254779904 : i64
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 232448 there; other tiles: recompute, 2.57 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// H100: "tile_graph.connect"({{.+}}) {level = "global", refused = "footprint: 540800 bytes needed in shared, 232448 there; other tiles: recompute, 2.57 times the arithmetic, 1.25 allowed; not streamed, no-stream: tiles are staged, blocks of them are not"}
// H100: }) {footprint = 141376 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00158[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00317[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[1, 1, 8, 64]>, traffic_after = 1107296256 : i64, traffic_before = 7584874496 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
  func.func @long_attention(%arg0: tensor<1x16x4096x64xf32>, %arg1: tensor<1x16x4096x64xf32>, %arg2: tensor<1x16x4096x64xf32>) -> tensor<1x16x4096x64xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 1.250000e-01 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x16x4096x4096xf32>
    %1 = linalg.fill ins(%cst_2 : f32) outs(%0 : tensor<1x16x4096x4096xf32>) -> tensor<1x16x4096x4096xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<1x16x4096x64xf32>, tensor<1x16x4096x64xf32>) outs(%1 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %16 = arith.mulf %in, %in_3 : f32
      %17 = arith.addf %out, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<1x16x4096x4096xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x16x4096x4096xf32>) outs(%0 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.mulf %in, %cst_0 : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096x4096xf32>
    %4 = tensor.empty() : tensor<1x16x4096xf32>
    %5 = linalg.fill ins(%cst_1 : f32) outs(%4 : tensor<1x16x4096xf32>) -> tensor<1x16x4096xf32>
    %6 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%3 : tensor<1x16x4096x4096xf32>) outs(%5 : tensor<1x16x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.maximumf %in, %out : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %6 : tensor<1x16x4096x4096xf32>, tensor<1x16x4096xf32>) outs(%0 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %16 = arith.subf %in, %in_3 : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096x4096xf32>
    %8 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<1x16x4096x4096xf32>) outs(%0 : tensor<1x16x4096x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = math.exp %in : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096x4096xf32>
    %9 = linalg.fill ins(%cst_2 : f32) outs(%4 : tensor<1x16x4096xf32>) -> tensor<1x16x4096xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%8 : tensor<1x16x4096x4096xf32>) outs(%9 : tensor<1x16x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.addf %in, %out : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096xf32>
    %11 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<1x16x4096xf32>) outs(%4 : tensor<1x16x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.divf %cst, %in : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096xf32>
    %12 = tensor.empty() : tensor<1x16x4096x64xf32>
    %13 = linalg.fill ins(%cst_2 : f32) outs(%12 : tensor<1x16x4096x64xf32>) -> tensor<1x16x4096x64xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%8, %arg2 : tensor<1x16x4096x4096xf32>, tensor<1x16x4096x64xf32>) outs(%13 : tensor<1x16x4096x64xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %16 = arith.mulf %in, %in_3 : f32
      %17 = arith.addf %out, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<1x16x4096x64xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %11 : tensor<1x16x4096x64xf32>, tensor<1x16x4096xf32>) outs(%12 : tensor<1x16x4096x64xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %16 = arith.mulf %in, %in_3 : f32
      linalg.yield %16 : f32
    } -> tensor<1x16x4096x64xf32>
    return %15 : tensor<1x16x4096x64xf32>
  }
}
