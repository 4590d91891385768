// RUN: magweld-opt --split-input-file --select-copy-stages %s | filecheck %s
// RUN: magweld-opt --split-input-file --select-copy-stages="most=2" %s | filecheck --check-prefix=TWO %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"global", 0, 0, 900.0, 32, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 2000.0, 32, 2, "cache", 0.0, 0>,
  #tile_graph.level<"shared", 2, 24576, 10000.0, 4, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 3, 65536, 90000.0, 4, 2, "explicit", 0.0, 0>
], 2, 256, 32, 128, 10000.0, [], []>

// A step of both factors has 4096 bytes: two tiles of three steps fill the level.
// CHECK-LABEL: func.func @two_tiles(
// CHECK:         }) {copy_stages = 3 : i64, footprint = 12288 : i64,
// TWO-LABEL:   func.func @two_tiles(
// TWO:           }) {copy_stages = 2 : i64, footprint = 8192 : i64,
func.func @two_tiles(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x64xf32>)
          outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "product"} : () -> tensor<64x64xf32>
    gpu.yield %0 : tensor<64x64xf32>
  }) {subgraph_name = "product", level = "shared", footprint = 4096 : i64,
      reduction_step = 32 : i64, tile = #tile_graph.tile<[16, 16]>} : () -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}

// Two steps of 8192 bytes leave no room for another tile: one has all of it.
// CHECK-LABEL: func.func @one_tile(
// CHECK:         }) {copy_stages = 3 : i64, footprint = 24576 : i64,
func.func @one_tile(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x64xf32>)
          outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "product"} : () -> tensor<64x64xf32>
    gpu.yield %0 : tensor<64x64xf32>
  }) {subgraph_name = "product", level = "shared", footprint = 8192 : i64,
      reduction_step = 32 : i64, tile = #tile_graph.tile<[32, 32]>} : () -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}

// A reduction of one step, a step that has no room twice, and tiles in a cache.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT:     copy_stages
// CHECK:         }) {footprint = 4096 : i64,
// CHECK-LABEL: func.func @no_room(
// CHECK-NOT:     copy_stages
// CHECK:         }) {footprint = 16384 : i64,
// CHECK-LABEL: func.func @cached(
// CHECK-NOT:     copy_stages
// CHECK:         }) {footprint = 4096 : i64, level = "l2",
func.func @one_step(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x64xf32>)
          outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "product"} : () -> tensor<64x64xf32>
    gpu.yield %0 : tensor<64x64xf32>
  }) {subgraph_name = "product", level = "shared", footprint = 4096 : i64,
      reduction_step = 32 : i64, tile = #tile_graph.tile<[16, 16]>} : () -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}

func.func @no_room(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x64xf32>)
          outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "product"} : () -> tensor<64x64xf32>
    gpu.yield %0 : tensor<64x64xf32>
  }) {subgraph_name = "product", level = "shared", footprint = 16384 : i64,
      reduction_step = 32 : i64, tile = #tile_graph.tile<[64, 64]>} : () -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}

func.func @cached(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x64xf32>)
          outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
      gpu.yield %r : tensor<64x64xf32>
    }) {op_name = "product"} : () -> tensor<64x64xf32>
    gpu.yield %0 : tensor<64x64xf32>
  }) {subgraph_name = "product", level = "l2", footprint = 4096 : i64,
      reduction_step = 32 : i64, tile = #tile_graph.tile<[16, 16]>} : () -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}
