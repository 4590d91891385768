// RUN: magweld-opt --propagate-tiles %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Eight rows of the result need eight sums.
//
// CHECK-LABEL: func.func @rows(
// CHECK:           {op_name = "sum", tile = #tile_graph.tile<[8]>}
// CHECK:           {op_name = "divide", tile = #tile_graph.tile<[8, 128]>}
// CHECK:         }) {implementation = "generated", level = "l2", recompute = 1.000000e+00 : f64, subgraph_name = "rows", tile = #tile_graph.tile<[8, 128]>}
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
  }) {subgraph_name = "rows", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[8, 128]>}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// Half a row needs the sum of the whole row, which is then computed twice. An addition
// counts one and a division four: (2 + 4) / (1 + 4).
//
// CHECK-LABEL: func.func @half_rows(
// CHECK:           {op_name = "sum", tile = #tile_graph.tile<[8]>}
// CHECK:           {op_name = "divide", tile = #tile_graph.tile<[8, 64]>}
// CHECK:         }) {{{.+}}recompute = 1.200000e+00 : f64, subgraph_name = "rows"
func.func @half_rows(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
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
      tile = #tile_graph.tile<[8, 64]>}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// A column of the product needs a column of its operand, over the whole reduction.
//
// CHECK-LABEL: func.func @column(
// CHECK:           {op_name = "exp", tile = #tile_graph.tile<[16, 2]>}
// CHECK:           {op_name = "matmul", tile = #tile_graph.tile<[32, 2]>}
func.func @column(%a: tensor<32x16xf32>, %b: tensor<16x8xf32>) -> tensor<32x8xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<16x8xf32>
      %r = linalg.exp ins(%b : tensor<16x8xf32>) outs(%empty : tensor<16x8xf32>)
          -> tensor<16x8xf32>
      gpu.yield %r : tensor<16x8xf32>
    }) {op_name = "exp"} : () -> tensor<16x8xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %2 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<32x8xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x8xf32>)
          -> tensor<32x8xf32>
      %r = linalg.matmul ins(%a, %1 : tensor<32x16xf32>, tensor<16x8xf32>)
          outs(%init : tensor<32x8xf32>) -> tensor<32x8xf32>
      gpu.yield %r : tensor<32x8xf32>
    }) {op_name = "matmul"} : () -> tensor<32x8xf32>
    gpu.yield %2 : tensor<32x8xf32>
  }) {subgraph_name = "exp_matmul", level = "l2",
      tile = #tile_graph.tile<[32, 2]>}
      : () -> tensor<32x8xf32>
  return %out : tensor<32x8xf32>
}

// Columns j and j + 6 of the same tensor: one box holds both, wherever the tile lies.
//
// CHECK-LABEL: func.func @gate(
// CHECK:           {op_name = "exp", tile = #tile_graph.tile<[4, 8]>}
// CHECK:           {op_name = "gate", tile = #tile_graph.tile<[4, 2]>}
func.func @gate(%x: tensor<16x12xf32>) -> tensor<16x6xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<16x12xf32>
      %r = linalg.exp ins(%x : tensor<16x12xf32>) outs(%empty : tensor<16x12xf32>)
          -> tensor<16x12xf32>
      gpu.yield %r : tensor<16x12xf32>
    }) {op_name = "exp"} : () -> tensor<16x12xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<16x12xf32>) -> tensor<16x12xf32>
    %2 = "tile_graph.operator"() ({
      %left = tensor.extract_slice %1[0, 0] [16, 6] [1, 1]
          : tensor<16x12xf32> to tensor<16x6xf32>
      %right = tensor.extract_slice %1[0, 6] [16, 6] [1, 1]
          : tensor<16x12xf32> to tensor<16x6xf32>
      %empty = tensor.empty() : tensor<16x6xf32>
      %r = linalg.mul ins(%left, %right : tensor<16x6xf32>, tensor<16x6xf32>)
          outs(%empty : tensor<16x6xf32>) -> tensor<16x6xf32>
      gpu.yield %r : tensor<16x6xf32>
    }) {op_name = "gate"} : () -> tensor<16x6xf32>
    gpu.yield %2 : tensor<16x6xf32>
  }) {subgraph_name = "exp_gate", level = "l2",
      tile = #tile_graph.tile<[4, 2]>}
      : () -> tensor<16x6xf32>
  return %out : tensor<16x6xf32>
}

// A block of the first product at a time, and nothing is computed twice.
//
// CHECK-LABEL: func.func @streamed(
// CHECK:           {op_name = "first", tile = #tile_graph.tile<[32, 48]>}
// CHECK:           {op_name = "second", tile = #tile_graph.tile<[32, 64]>}
// CHECK:         recompute = 1.000000e+00 : f64, stream_step = 48 : i64
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
    %c = "tile_graph.connect"(%first) {level = "l2", stream = 1 : i64}
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
  }) {subgraph_name = "two", level = "l2", implementation = "generated",
      stream_step = 48, tile = #tile_graph.tile<[32, 64]>}
      : () -> tensor<512x64xf32>
  return %out : tensor<512x64xf32>
}
