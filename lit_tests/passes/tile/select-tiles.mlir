// RUN: magweld-opt --select-tiles %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The tile takes whole rows. Unfused, the sum is written and read once more, and the
// input is read twice: (3 * 64 * 128 + 2 * 64) * 4 bytes. As planned, only input and
// result move. In l2 the sum is written and read as well, and a tile's eight sums of
// 32 bytes are half a transaction when they come from outside.
//
// CHECK-LABEL: func.func @rows(
// CHECK:         "tile_graph.subgraph"
// CHECK:         }) {footprint = {{[0-9]+}} : i64, implementation = "generated", level = "l2",
// CHECK-SAME:      moved_after = {dram = 65536 : i64, l2 = 66048 : i64}, moved_before = {dram = 98816 : i64, l2 = 99072 : i64},
// CHECK-SAME:      predicted_seconds = {{.+}} : f64, predicted_shares = {arithmetic = {{.+}} : f64, dram = 2.621440e-06 : f64, l2 = {{.+}} : f64},
// CHECK-SAME:      reduction_step = 1 : i64, seconds_apart = {{.+}} : f64, subgraph_name = "rows",
// CHECK-SAME:      tile = #tile_graph.tile<[{{[0-9]+}}, 128]>, traffic_after = 65536 : i64, traffic_before = 98816 : i64}
func.func @rows(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64xf32>) -> tensor<64xf32>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %1 : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.divf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "divide"} : () -> tensor<64x128xf32>
    gpu.yield %2 : tensor<64x128xf32>
  }) {subgraph_name = "rows", level = "l2", implementation = "generated"}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// A tile that is there is kept, and its numbers are told.
//
// CHECK-LABEL: func.func @kept(
// CHECK:         }) {footprint = {{[0-9]+}} : i64, implementation = "generated", level = "l2",
// CHECK-SAME:      subgraph_name = "rows", tile = #tile_graph.tile<[2, 128]>, traffic_after = 65536 : i64, traffic_before = 98816 : i64}
func.func @kept(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64xf32>) -> tensor<64xf32>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %1 : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.divf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "divide"} : () -> tensor<64x128xf32>
    gpu.yield %2 : tensor<64x128xf32>
  }) {subgraph_name = "rows", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[2, 128]>}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// Alone, an operator that fits no inner level runs as one tile from outside: sums of f16
// cannot wait between blocks of the reduction.
//
// CHECK-LABEL: func.func @no_room(
// CHECK:         }) {level = "dram", subgraph_name = "product", tile = #tile_graph.tile<[64, 64]>}
func.func @no_room(%a: tensor<64x16384xf16>, %b: tensor<16384x64xf16>)
    -> tensor<64x64xf16>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f16
      %empty = tensor.empty() : tensor<64x64xf16>
      %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x64xf16>)
          -> tensor<64x64xf16>
      %r = linalg.matmul ins(%a, %b : tensor<64x16384xf16>, tensor<16384x64xf16>)
          outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
      gpu.yield %r : tensor<64x64xf16>
    }) {op_name = "matmul"} : () -> tensor<64x64xf16>
    gpu.yield %0 : tensor<64x64xf16>
  }) {subgraph_name = "product", level = "l2"}
      : () -> tensor<64x64xf16>
  return %out : tensor<64x64xf16>
}

// Rows of the first product are as long as the second one's reduction: the tile has to
// take them in blocks, or its rows would not fit.
//
// CHECK-LABEL: func.func @streamed(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2", stream = 1 : i64}
// CHECK:         stream_step = 64 : i64, subgraph_name = "two", tile = #tile_graph.tile<[{{[0-9]+}}, 64]>, traffic_after = {{[0-9]+}} : i64
func.func @streamed(%a: tensor<512x64xf32>, %b: tensor<64x1024xf32>,
    %d: tensor<1024x64xf32>) -> tensor<512x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %first = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<512x1024xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x1024xf32>)
          -> tensor<512x1024xf32>
      %r = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x1024xf32>)
          outs(%init : tensor<512x1024xf32>) -> tensor<512x1024xf32>
      gpu.yield %r : tensor<512x1024xf32>
    }) {op_name = "first"} : () -> tensor<512x1024xf32>
    %c = "tile_graph.connect"(%first) {level = "l2"}
        : (tensor<512x1024xf32>) -> tensor<512x1024xf32>
    %second = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<512x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x64xf32>)
          -> tensor<512x64xf32>
      %r = linalg.matmul ins(%c, %d : tensor<512x1024xf32>, tensor<1024x64xf32>)
          outs(%init : tensor<512x64xf32>) -> tensor<512x64xf32>
      gpu.yield %r : tensor<512x64xf32>
    }) {op_name = "second"} : () -> tensor<512x64xf32>
    gpu.yield %second : tensor<512x64xf32>
  }) {subgraph_name = "two", level = "l2", implementation = "generated"}
      : () -> tensor<512x64xf32>
  return %out : tensor<512x64xf32>
}
