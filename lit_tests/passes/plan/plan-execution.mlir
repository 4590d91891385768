// RUN: magweld-opt --plan-execution --split-input-file %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A cache holds what is read, the sums and the result of a tile: 4096 + 32 + 4096
// bytes. What is read twice has a place for each reading, as the lifetimes tell.
//
// CHECK: #[[ROWS:.+]] = affine_map<(d0) -> (d0, 0)>
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[X:.+]]: tensor<64x128xf32>)
// CHECK:         %[[OUT:.+]] = "tile_graph.for_tiles"() ({
// CHECK-NEXT:    ^bb0(%[[I:.+]]: index):
// CHECK-NEXT:      %[[A:.+]] = "tile_graph.load"(%[[X]], %[[I]]) {moved = 4096 : i64, offsets = #[[ROWS]], place = #tile_graph.place<"l2", 0 : i64, 4096 : i64, 64 : i64>, sizes = [8, 128], transactions = 64 : i64}
// CHECK-NEXT:      %[[S:.+]] = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 4096 : i64, 32 : i64, 64 : i64>} : () -> tensor<8xf32>
// CHECK-NEXT:      %[[SUM:.+]] = "tile_graph.compute"() ({
// CHECK:             %[[ZERO:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[S]] : tensor<8xf32>)
// CHECK:             linalg.reduce ins(%[[A]] : tensor<8x128xf32>) outs(%[[ZERO]] : tensor<8xf32>)
// CHECK:           }) {op_name = "sum"} : () -> tensor<8xf32>
// CHECK-NEXT:      "tile_graph.release"(%[[A]])
// CHECK-NEXT:      %[[B:.+]] = "tile_graph.load"(%[[X]], %[[I]]) {{.+}}place<"l2", 0 : i64, 4096 : i64, 64 : i64>
// CHECK-NEXT:      %[[D:.+]] = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 4160 : i64, 4096 : i64, 64 : i64>}
// CHECK-NEXT:      %[[QUOTIENT:.+]] = "tile_graph.compute"() ({
// CHECK:             linalg.generic {{.+}} ins(%[[B]], %[[SUM]] : {{.+}}) outs(%[[D]] :
// CHECK:           }) {op_name = "divide"} : () -> tensor<8x128xf32>
// CHECK-NEXT:      "tile_graph.release"(%[[B]])
// CHECK-NEXT:      "tile_graph.store"(%[[QUOTIENT]], %[[D]], %[[I]]) {moved = 4096 : i64, offsets = #[[ROWS]], result = 0 : i64, sizes = [8, 128], transactions = 64 : i64}
// CHECK-NEXT:      "tile_graph.release"(%[[S]])
// CHECK-NEXT:      "tile_graph.release"(%[[D]])
// CHECK-NEXT:      gpu.yield
// CHECK-NEXT:    }) {extents = [64], footprint = 8256 : i64, level = "l2", operators = ["sum", "divide"], steps = [8], subgraph_name = "rows", tile = #tile_graph.tile<[8, 128]>} : () -> tensor<64x128xf32>
// CHECK-NEXT:    return %[[OUT]]
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
    %1 = "tile_graph.connect"(%0) {level = "l2"} : (tensor<64xf32>) -> tensor<64xf32>
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
  }) {subgraph_name = "rows", level = "l2", tile = #tile_graph.tile<[8, 128]>,
      footprint = 8256, implementation = "generated"} : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// A window over an edge: what lies inside is loaded, then there is a border around it.
// The window begins where it would without an edge, in the tile with the border.
//
// CHECK-LABEL: func.func @window(
// CHECK:         %[[BEFORE:.+]] = affine.apply #{{.+}}(%[[I:.+]])
// CHECK:         %[[CLAMPED:.+]] = affine.min
// CHECK:         %[[INSIDE:.+]] = "tile_graph.load"(%{{.+}}, %[[CLAMPED]]) {{.+}} sizes = [10]
// CHECK:         %[[AROUND:.+]] = "tile_graph.allocate"() {{.+}} : () -> tensor<12xf32>
// CHECK:         %[[BORDERED:.+]] = "tile_graph.compute"() ({
// CHECK:           linalg.fill {{.+}} outs(%[[AROUND]] : tensor<12xf32>)
// CHECK:           tensor.insert_slice %[[INSIDE]] into %{{.+}}[1] [10] [1]
// CHECK:         }) {op_name = "sums"}
// CHECK:         %[[AT:.+]] = affine.apply #{{.+}}(%[[I]], %[[CLAMPED]])
// CHECK:         tensor.extract_slice %[[BORDERED]][%[[AT]]] [10] [1]
// CHECK:         linalg.conv_1d
func.func @window(%x: tensor<64xf32>, %k: tensor<3xf32>) -> tensor<64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low[1] high[1] {
      ^bb0(%i: index):
        tensor.yield %zero : f32
      } : tensor<64xf32> to tensor<66xf32>
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.conv_1d ins(%p, %k : tensor<66xf32>, tensor<3xf32>)
          outs(%init : tensor<64xf32>) -> tensor<64xf32>
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sums"} : () -> tensor<64xf32>
    gpu.yield %0 : tensor<64xf32>
  }) {subgraph_name = "window", level = "l2", tile = #tile_graph.tile<[8]>}
      : () -> tensor<64xf32>
  return %out : tensor<64xf32>
}

// What a library computes is no plan.
//
// CHECK-LABEL: func.func @library(
// CHECK:         "tile_graph.subgraph"() ({
// CHECK-NOT:     "tile_graph.for_tiles"
// CHECK:       }
func.func @library(%a: tensor<16x8xf32>, %b: tensor<8x6xf32>) -> tensor<16x6xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<16x6xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x6xf32>)
          -> tensor<16x6xf32>
      %r = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x6xf32>)
          outs(%init : tensor<16x6xf32>) -> tensor<16x6xf32>
      gpu.yield %r : tensor<16x6xf32>
    }) {op_name = "matmul"} : () -> tensor<16x6xf32>
    gpu.yield %0 : tensor<16x6xf32>
  }) {subgraph_name = "product", level = "dram", implementation = "library"}
      : () -> tensor<16x6xf32>
  return %out : tensor<16x6xf32>
}

// -----

#device = #tile_graph.device<"gpu", [
  #tile_graph.level<"global", 0, 0, 900.0, 32, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 49152, 9000.0, 128, 80, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 65536, 90000.0, 4, 80, "explicit", 0.0, 0>
], 80, 256, 32, 128, 15000.0, [], []>

// The threads of a block share memory: it holds steps of the operands, 4 of the 64
// elements long, and the product, of which every thread reads what others wrote. It
// lies behind the steps, which are free then. The maxima go out from registers.
//
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[A:.+]] = "tile_graph.load"({{.+}} place = #tile_graph.place<"shared", 0 : i64, 128 : i64, 64 : i64>, sizes = [8, 64]
// CHECK:         %[[B:.+]] = "tile_graph.load"({{.+}} place = #tile_graph.place<"shared", 128 : i64, 512 : i64, 64 : i64>, sizes = [64, 32]
// CHECK:         %[[P:.+]] = "tile_graph.allocate"() {place = #tile_graph.place<"shared", 640 : i64, 1024 : i64, 64 : i64>}
// CHECK-NEXT:    "tile_graph.barrier"
// CHECK-NEXT:    %[[PRODUCT:.+]] = "tile_graph.compute"
// CHECK:           linalg.matmul ins(%[[A]], %[[B]] :
// CHECK:         %[[M:.+]] = "tile_graph.allocate"() : () -> tensor<8xf32>
// CHECK-NEXT:    "tile_graph.barrier"
// CHECK-NEXT:    "tile_graph.compute"
// CHECK:           linalg.reduce ins(%[[PRODUCT]] :
// CHECK:         "tile_graph.store"(%{{.+}}, %[[M]], %
// CHECK-NOT:     "tile_graph.barrier"
// CHECK:         }) {extents = [64], footprint = 1664 : i64
func.func @shared(%a: tensor<64x64xf32>, %b: tensor<64x32xf32>) -> tensor<64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x32xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>)
          -> tensor<64x32xf32>
      %r = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x32xf32>)
          outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
      gpu.yield %r : tensor<64x32xf32>
    }) {op_name = "matmul"} : () -> tensor<64x32xf32>
    %1 = "tile_graph.connect"(%0) {level = "shared"}
        : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %2 = "tile_graph.operator"() ({
      %low = arith.constant 0xFF800000 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%1 : tensor<64x32xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.maximumf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "maximum"} : () -> tensor<64xf32>
    gpu.yield %2 : tensor<64xf32>
  }) {subgraph_name = "rows", level = "shared", tile = #tile_graph.tile<[8]>,
      reduction_step = 4, footprint = 1664} : () -> tensor<64xf32>
  return %out : tensor<64xf32>
}

// Three steps of each factor are held, of 128 and of 512 bytes.
//
// CHECK-LABEL: func.func @staged(
// CHECK:         "tile_graph.load"({{.*}}place = #tile_graph.place<"shared", 0 : i64, 384 : i64, 64 : i64>
// CHECK:         "tile_graph.load"({{.*}}place = #tile_graph.place<"shared", 384 : i64, 1536 : i64, 64 : i64>
// CHECK:         }) {copy_stages = 3 : i64, extents = [64], footprint = 2944 : i64
func.func @staged(%a: tensor<64x64xf32>, %b: tensor<64x32xf32>) -> tensor<64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x32xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>)
          -> tensor<64x32xf32>
      %r = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x32xf32>)
          outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
      gpu.yield %r : tensor<64x32xf32>
    }) {op_name = "matmul"} : () -> tensor<64x32xf32>
    %1 = "tile_graph.connect"(%0) {level = "shared"}
        : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %2 = "tile_graph.operator"() ({
      %low = arith.constant 0xFF800000 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%1 : tensor<64x32xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.maximumf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "maximum"} : () -> tensor<64xf32>
    gpu.yield %2 : tensor<64xf32>
  }) {subgraph_name = "rows", level = "shared", tile = #tile_graph.tile<[8]>,
      reduction_step = 4, copy_stages = 3, footprint = 2944} : () -> tensor<64xf32>
  return %out : tensor<64xf32>
}
