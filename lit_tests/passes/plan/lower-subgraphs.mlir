// RUN: magweld-opt --plan-execution --lower-subgraphs %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// One loop over the tiles of the last operator; the sum of a tile is a value in it.
// Kernels stand after the functions that call them.
//
// CHECK-LABEL: func.func @fused(
// CHECK-SAME:      %[[X:.+]]: tensor<64x128xf32>) -> tensor<64x128xf32> {
// CHECK-NEXT:    %[[OUT:.+]] = tensor.empty() : tensor<64x128xf32>
// CHECK-NEXT:    %[[R:.+]] = call @kernel_0(%[[X]], %[[OUT]]) {tile_graph.operators = ["sum", "divide"]}
// CHECK-NEXT:    return %[[R]]
func.func @fused(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
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
  }) {subgraph_name = "rows", level = "l2",
      tile = #tile_graph.tile<[8, 128]>,
      footprint = 8256, implementation = "generated",
      moved_after = {dram = 65536 : i64, l2 = 66048 : i64}}
      : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// What is read elsewhere is written from the same tiles, and read where it is written.
//
// CHECK-LABEL: func.func @two_results(
// CHECK-SAME:      %[[X:.+]]: tensor<64x128xf32>)
// CHECK:         %[[R:.+]]:2 = call @kernel_{{.+}}(%[[X]], %{{.+}}, %{{.+}}) {tile_graph.operators = ["exp", "sum"]}
// CHECK-NEXT:    return %[[R]]#1, %[[R]]#0
func.func @two_results(%x: tensor<64x128xf32>)
    -> (tensor<64x128xf32>, tensor<64xf32>)
    attributes {tile_graph.device = #device} {
  %out:2 = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.exp ins(%x : tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>)
          -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "exp"} : () -> tensor<64x128xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %2 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%1 : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    gpu.yield %2, %0 : tensor<64xf32>, tensor<64x128xf32>
  }) {subgraph_name = "outputs", level = "l2", tile = #tile_graph.tile<[8]>,
      implementation = "generated"} : () -> (tensor<64xf32>, tensor<64x128xf32>)
  return %out#1, %out#0 : tensor<64x128xf32>, tensor<64xf32>
}

// Equal subgraphs share one kernel.
//
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[A:.+]] = call @kernel_0(
// CHECK:         call @kernel_0(%[[A]],
func.func @twice(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %a = "tile_graph.subgraph"() ({
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
  }) {subgraph_name = "rows", level = "l2",
      tile = #tile_graph.tile<[8, 128]>,
      footprint = 8256, implementation = "generated",
      moved_after = {dram = 65536 : i64, l2 = 66048 : i64}}
      : () -> tensor<64x128xf32>
  %e = "tile_graph.connect"(%a) {level = "dram"}
      : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %b = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%e : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
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
          ins(%e, %1 : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.divf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "divide"} : () -> tensor<64x128xf32>
    gpu.yield %2 : tensor<64x128xf32>
  }) {subgraph_name = "rows", level = "l2",
      tile = #tile_graph.tile<[8, 128]>,
      footprint = 8256, implementation = "generated",
      moved_after = {dram = 65536 : i64, l2 = 66048 : i64}}
      : () -> tensor<64x128xf32>
  return %b : tensor<64x128xf32>
}

// CHECK-LABEL: func.func @library(
// CHECK-SAME:      %[[A:.+]]: tensor<4x8xf32>, %[[B:.+]]: tensor<6x8xf32>)
// CHECK-NEXT:    %[[OUT:.+]] = tensor.empty() : tensor<4x6xf32>
// CHECK-NEXT:    %[[R:.+]] = call @library_0(%[[A]], %[[B]], %[[OUT]])
// CHECK-NEXT:    return %[[R]]
func.func @library(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>) -> tensor<4x6xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<4x6xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>)
          -> tensor<4x6xf32>
      %r = linalg.matmul
          indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                           affine_map<(m, n, k) -> (n, k)>,
                           affine_map<(m, n, k) -> (m, n)>]
          ins(%a, %b : tensor<4x8xf32>, tensor<6x8xf32>)
          outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
      gpu.yield %r : tensor<4x6xf32>
    }) {op_name = "matmul"} : () -> tensor<4x6xf32>
    gpu.yield %0 : tensor<4x6xf32>
  }) {subgraph_name = "product", level = "dram", implementation = "library"}
      : () -> tensor<4x6xf32>
  return %out : tensor<4x6xf32>
}

// The library wants the weight with a dimension more, pads by itself and brings its
// own result.
//
// CHECK-LABEL: func.func @depthwise(
// CHECK-SAME:      %[[X:.+]]: tensor<1x3x8x8xf32>, %[[W:.+]]: tensor<3x3x3xf32>)
// CHECK-NEXT:    %[[E:.+]] = tensor.expand_shape %[[W]] {{\[}}[0, 1], [2], [3]] output_shape [3, 1, 3, 3]
// CHECK-NEXT:    %[[OUT:.+]] = tensor.empty()
// CHECK-NEXT:    call @library_1(%[[X]], %[[E]], %[[OUT]])
func.func @depthwise(%x: tensor<1x3x8x8xf32>, %w: tensor<3x3x3xf32>)
    -> tensor<1x3x8x8xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f32
      } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
      %empty = tensor.empty() : tensor<1x3x8x8xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x8x8xf32>)
          -> tensor<1x3x8x8xf32>
      %r = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>,
                                              strides = dense<1> : vector<2xi64>}
          ins(%padded, %w : tensor<1x3x10x10xf32>, tensor<3x3x3xf32>)
          outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      gpu.yield %r : tensor<1x3x8x8xf32>
    }) {op_name = "conv"} : () -> tensor<1x3x8x8xf32>
    gpu.yield %0 : tensor<1x3x8x8xf32>
  }) {subgraph_name = "conv", level = "dram", implementation = "library"}
      : () -> tensor<1x3x8x8xf32>
  return %out : tensor<1x3x8x8xf32>
}

// Near an edge of the image a tile reads rows that lie inside all the same, and finds
// the window elsewhere in a buffer with a border: all sizes are static.
//
// CHECK-LABEL: func.func @halo(
func.func @halo(%x: tensor<1x3x8x8xf32>, %w: tensor<3x3x3xf32>)
    -> tensor<1x3x8x8xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<1x3x8x8xf32>
      %r = linalg.exp ins(%x : tensor<1x3x8x8xf32>)
          outs(%empty : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      gpu.yield %r : tensor<1x3x8x8xf32>
    }) {op_name = "exp"} : () -> tensor<1x3x8x8xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2"}
        : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
    %2 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f32
      } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
      %empty = tensor.empty() : tensor<1x3x8x8xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x8x8xf32>)
          -> tensor<1x3x8x8xf32>
      %r = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>,
                                              strides = dense<1> : vector<2xi64>}
          ins(%padded, %w : tensor<1x3x10x10xf32>, tensor<3x3x3xf32>)
          outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      gpu.yield %r : tensor<1x3x8x8xf32>
    }) {op_name = "conv"} : () -> tensor<1x3x8x8xf32>
    gpu.yield %2 : tensor<1x3x8x8xf32>
  }) {subgraph_name = "halo", level = "l2", tile = #tile_graph.tile<[1, 3, 2, 8]>,
      implementation = "generated"} : () -> tensor<1x3x8x8xf32>
  return %out : tensor<1x3x8x8xf32>
}

// CHECK-LABEL: func.func @no_elements(
// CHECK-NEXT:    %[[R:.+]] = tensor.empty() : tensor<0x4xf32>
// CHECK-NEXT:    return %[[R]]
func.func @no_elements(%x: tensor<0x4xf32>) -> tensor<0x4xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<0x4xf32>
      %r = linalg.exp ins(%x : tensor<0x4xf32>) outs(%empty : tensor<0x4xf32>)
          -> tensor<0x4xf32>
      gpu.yield %r : tensor<0x4xf32>
    }) {op_name = "exp"} : () -> tensor<0x4xf32>
    gpu.yield %0 : tensor<0x4xf32>
  }) {subgraph_name = "exp", level = "dram",
      tile = #tile_graph.tile<[1, 4]>}
      : () -> tensor<0x4xf32>
  return %out : tensor<0x4xf32>
}

// The tile of a slice is taken from the tensor behind it, without a copy.
//
// CHECK-LABEL: func.func @right_half(
func.func @right_half(%x: tensor<16x12xf32>) -> tensor<16x6xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %right = tensor.extract_slice %x[0, 6] [16, 6] [1, 1]
          : tensor<16x12xf32> to tensor<16x6xf32>
      %empty = tensor.empty() : tensor<16x6xf32>
      %r = linalg.exp ins(%right : tensor<16x6xf32>) outs(%empty : tensor<16x6xf32>)
          -> tensor<16x6xf32>
      gpu.yield %r : tensor<16x6xf32>
    }) {op_name = "exp"} : () -> tensor<16x6xf32>
    gpu.yield %0 : tensor<16x6xf32>
  }) {subgraph_name = "right", level = "dram", tile = #tile_graph.tile<[4, 2]>}
      : () -> tensor<16x6xf32>
  return %out : tensor<16x6xf32>
}

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME:      %[[X:.+]]: tensor<64x128xf32>, %[[OUT:.+]]: tensor<64x128xf32>) -> tensor<64x128xf32>
// CHECK-SAME:      tile_graph.footprint = 8256 : i64, tile_graph.kernel, tile_graph.level = "l2", tile_graph.moved_after = {dram = 65536 : i64, l2 = 66048 : i64}, tile_graph.tile = #tile_graph.tile<[8, 128]>
// CHECK-NEXT:    %[[R:.+]] = scf.forall (%[[I:.+]]) = (0) to (64) step (8) shared_outs(%[[O:.+]] = %[[OUT]])
// CHECK:           tensor.extract_slice %[[X]][%[[I]], 0] [8, 128] [1, 1]
// CHECK:           %[[SUM:.+]] = linalg.reduce
// CHECK:           %[[DIV:.+]] = linalg.generic {{.+}} ins(%{{.+}}, %[[SUM]] : tensor<8x128xf32>, tensor<8xf32>)
// CHECK:           scf.forall.in_parallel {
// CHECK-NEXT:        tensor.parallel_insert_slice %[[DIV]] into %[[O]][%[[I]], 0] [8, 128] [1, 1]
// CHECK:         return %[[R]]
// CHECK:       func.func private @kernel_1(
// CHECK-SAME:      %[[X:.+]]: tensor<64x128xf32>, %[[A:.+]]: tensor<64xf32>, %[[B:.+]]: tensor<64x128xf32>) -> (tensor<64xf32>, tensor<64x128xf32>)
// CHECK-NEXT:    %[[R:.+]]:2 = scf.forall (%[[I:.+]]) = (0) to (64) step (8) shared_outs(%[[P:.+]] = %[[A]], %[[Q:.+]] = %[[B]])
// CHECK:           %[[T:.+]] = tensor.extract_slice %[[Q]][%[[I]], 0] [8, 128] [1, 1]
// CHECK:           %[[EXP:.+]] = linalg.exp ins(%{{.+}}) outs(%[[T]] :
// CHECK:           %[[SUM:.+]] = linalg.reduce ins(%[[EXP]] :
// CHECK:           scf.forall.in_parallel {
// CHECK-NEXT:        tensor.parallel_insert_slice %[[SUM]] into %[[P]][%[[I]]] [8] [1]
// CHECK-NEXT:        tensor.parallel_insert_slice %[[EXP]] into %[[Q]][%[[I]], 0] [8, 128] [1, 1]
// CHECK:         return %[[R]]#0, %[[R]]#1
// CHECK:       func.func private @library_0(tensor<4x8xf32>, tensor<6x8xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-SAME:      {magweld.library = {op = "matmul", transpose_a = false, transpose_b = true}}
// CHECK:       func.func private @library_1(
// CHECK-SAME:      magweld.adopts, magweld.library = {dilation = [1, 1], groups = 3 : i64, op = "convolution", padding = [1, 1], strides = [1, 1]}
// CHECK:       func.func private @kernel_2(%[[X:.+]]: tensor<1x3x8x8xf32>,
// CHECK:           %[[WANTED:.+]] = affine.apply #{{.+}}(%[[I:.+]])
// CHECK-NEXT:      %[[LEAST:.+]] = affine.max #{{.+}}(%[[WANTED]])
// CHECK-NEXT:      %[[FIRST:.+]] = affine.min #{{.+}}(%[[LEAST]])
// CHECK-NEXT:      tensor.extract_slice %[[X]][0, 0, %[[FIRST]], 0] [1, 3, 4, 8] [1, 1, 1, 1]
// CHECK:           %[[EXP:.+]] = linalg.exp
// CHECK:           %[[BORDER:.+]] = linalg.fill {{.+}} -> tensor<1x3x6x10xf32>
// CHECK-NEXT:      %[[BUFFER:.+]] = tensor.insert_slice %[[EXP]] into %[[BORDER]][0, 0, 1, 1] [1, 3, 4, 8] [1, 1, 1, 1]
// CHECK-NEXT:      %[[AT:.+]] = affine.apply #{{.+}}(%[[I]], %[[FIRST]])
// CHECK-NEXT:      %[[WINDOW:.+]] = tensor.extract_slice %[[BUFFER]][0, 0, %[[AT]], 0] [1, 3, 4, 10] [1, 1, 1, 1]
// CHECK:           linalg.depthwise_conv_2d_nchw_chw {{.+}} ins(%[[WINDOW]],
// CHECK:       func.func private @kernel_3(
// CHECK-SAME:      %[[X:.+]]: tensor<16x12xf32>
// CHECK:           %[[J:.+]] = affine.apply #{{.+}}(%{{.+}})
// CHECK-NEXT:      tensor.extract_slice %[[X]][%{{.+}}, %[[J]]] [4, 2] [1, 1]
// CHECK-NOT:       tensor.extract_slice %[[X]]
// CHECK-NOT:   @kernel_4
// CHECK-NOT:   tile_graph.subgraph
