// RUN: magweld-opt --shift-slices %s | filecheck %s
// RUN: magweld-opt --shift-slices=alignment=160 %s | filecheck %s --check-prefix=ALIGNED

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// The first part begins with the tensor. The second and the third one begin in it, and
// are read from there, at the least offset of several slices.
//
// CHECK-LABEL: func.func @parts(
// CHECK-SAME:      %[[X:[^:]+]]: tensor<4x24xf32>)
// CHECK:           extract_slice %[[X]][0, 0] [4, 8]
// CHECK:         %[[A:.+]] = "tile_graph.shift"(%[[X]]) {offsets = [0, 8]} : (tensor<4x24xf32>) -> tensor<4x24xf32>
// CHECK:           extract_slice %[[A]][0, 0] [4, 8]
// CHECK:         %[[B:.+]] = "tile_graph.shift"(%[[X]]) {offsets = [1, 16]}
// CHECK:           extract_slice %[[B]][1, 0] [2, 8]
// CHECK:           extract_slice %[[B]][0, 0] [2, 8]
//
// The second part begins at byte 32, the third one at byte 160.
//
// ALIGNED-LABEL: func.func @parts(
// ALIGNED-SAME:      %[[X:[^:]+]]: tensor<4x24xf32>)
// ALIGNED:           extract_slice %[[X]][0, 8] [4, 8]
// ALIGNED:         "tile_graph.shift"(%[[X]]) {offsets = [1, 16]}
func.func @parts(%x: tensor<4x24xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x24xf32> to tensor<4x8xf32>
      %e = tensor.empty() : tensor<4x8xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%p: f32, %o: f32):
        %q = math.exp %p : f32
        linalg.yield %q : f32
      } -> tensor<4x8xf32>
      gpu.yield %r : tensor<4x8xf32>
    }) {op_name = "exp_0"} : () -> tensor<4x8xf32>
    gpu.yield %1 : tensor<4x8xf32>
  }) {subgraph_name = "s0", level = "dram", implementation = "generated"} : () -> tensor<4x8xf32>
  %2 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %x[0, 8] [4, 8] [1, 1] : tensor<4x24xf32> to tensor<4x8xf32>
      %e = tensor.empty() : tensor<4x8xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%p: f32, %o: f32):
        %q = math.exp %p : f32
        linalg.yield %q : f32
      } -> tensor<4x8xf32>
      gpu.yield %r : tensor<4x8xf32>
    }) {op_name = "exp_1"} : () -> tensor<4x8xf32>
    gpu.yield %1 : tensor<4x8xf32>
  }) {subgraph_name = "s1", level = "dram", implementation = "generated"} : () -> tensor<4x8xf32>
  %3 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %x[2, 16] [2, 8] [1, 1] : tensor<4x24xf32> to tensor<2x8xf32>
      %t = tensor.extract_slice %x[1, 16] [2, 8] [1, 1] : tensor<4x24xf32> to tensor<2x8xf32>
      %e = tensor.empty() : tensor<2x8xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%s, %t : tensor<2x8xf32>, tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
      ^bb0(%p: f32, %u: f32, %o: f32):
        %q = arith.addf %p, %u : f32
        linalg.yield %q : f32
      } -> tensor<2x8xf32>
      gpu.yield %r : tensor<2x8xf32>
    }) {op_name = "add"} : () -> tensor<2x8xf32>
    gpu.yield %1 : tensor<2x8xf32>
  }) {subgraph_name = "s2", level = "dram", implementation = "generated"} : () -> tensor<2x8xf32>
  return %0, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>
}

// What a subgraph makes is shifted behind its edge. Two subgraphs that read one part
// share it, and the edge of the second one goes away.
//
// CHECK-LABEL: func.func @made(
// CHECK:         %[[M:.+]] = "tile_graph.subgraph"
// CHECK:         %[[C:.+]] = "tile_graph.connect"(%[[M]])
// CHECK-NOT:     tile_graph.connect
// CHECK:         %[[S:.+]] = "tile_graph.shift"(%[[C]]) {offsets = [4]}
// CHECK:           extract_slice %[[S]][0] [4]
// CHECK-NOT:     tile_graph.shift
// CHECK:           extract_slice %[[S]][0] [4]
func.func @made(%x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {tile_graph.device = #device} {
  %m = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<8xf32>
      %r = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      gpu.yield %r : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %1 : tensor<8xf32>
  }) {subgraph_name = "m", level = "dram", implementation = "generated"} : () -> tensor<8xf32>
  %c = "tile_graph.connect"(%m) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  %d = "tile_graph.connect"(%m) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %c[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.transpose ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) permutation = [0]
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "a"} : () -> tensor<4xf32>
    gpu.yield %1 : tensor<4xf32>
  }) {subgraph_name = "s0", level = "dram", implementation = "generated"} : () -> tensor<4xf32>
  %2 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %d[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.transpose ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) permutation = [0]
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "b"} : () -> tensor<4xf32>
    gpu.yield %1 : tensor<4xf32>
  }) {subgraph_name = "s1", level = "dram", implementation = "generated"} : () -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// Who reads all of the tensor beside a part, a library, and a convolution, whose
// weights may be transformed as a whole, read it from its first element on.
//
// CHECK-LABEL: func.func @left(
// CHECK-NOT:     tile_graph.shift
func.func @left(%x: tensor<2x4xf32>, %y: tensor<8x4xf32>, %w: tensor<4x2x3x3xf32>,
                %i: tensor<1x2x8x8xf32>)
    -> (tensor<2x4xf32>, tensor<4x4xf32>, tensor<1x2x6x6xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %x[1, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
      %e = tensor.empty() : tensor<2x4xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
      ^bb0(%p: f32, %u: f32, %o: f32):
        %q = arith.addf %p, %u : f32
        linalg.yield %q : f32
      } -> tensor<2x4xf32>
      gpu.yield %r : tensor<2x4xf32>
    }) {op_name = "add"} : () -> tensor<2x4xf32>
    gpu.yield %1 : tensor<2x4xf32>
  }) {subgraph_name = "s0", level = "dram", implementation = "generated"} : () -> tensor<2x4xf32>
  %2 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %y[4, 0] [4, 4] [1, 1] : tensor<8x4xf32> to tensor<4x4xf32>
      %t = tensor.extract_slice %y[2, 0] [4, 4] [1, 1] : tensor<8x4xf32> to tensor<4x4xf32>
      %e = tensor.empty() : tensor<4x4xf32>
      %r = linalg.matmul ins(%s, %t : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
      gpu.yield %r : tensor<4x4xf32>
    }) {op_name = "matmul", implementation = "library"} : () -> tensor<4x4xf32>
    gpu.yield %1 : tensor<4x4xf32>
  }) {subgraph_name = "s1", level = "dram", implementation = "library"} : () -> tensor<4x4xf32>
  %3 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %s = tensor.extract_slice %w[2, 0, 0, 0] [2, 2, 3, 3] [1, 1, 1, 1] : tensor<4x2x3x3xf32> to tensor<2x2x3x3xf32>
      %e = tensor.empty() : tensor<1x2x6x6xf32>
      %r = linalg.conv_2d_nchw_fchw ins(%i, %s : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%e : tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
      gpu.yield %r : tensor<1x2x6x6xf32>
    }) {op_name = "conv"} : () -> tensor<1x2x6x6xf32>
    gpu.yield %1 : tensor<1x2x6x6xf32>
  }) {subgraph_name = "s2", level = "dram", implementation = "generated"} : () -> tensor<1x2x6x6xf32>
  return %0, %2, %3 : tensor<2x4xf32>, tensor<4x4xf32>, tensor<1x2x6x6xf32>
}
