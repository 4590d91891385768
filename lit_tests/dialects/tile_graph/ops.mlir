// Every op and attribute survives printing and parsing.
//
// RUN: %roundtrip | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 12.5, 32>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [#tile_graph.peak<"f64", 50.0>], [
  #tile_graph.instruction<"mma", [16, 8, 16], "f16", "f32", 800.0>,
  #tile_graph.library<"product.f16", "product", "f16", 600.0>
]>

// CHECK-LABEL: func.func @graph
// CHECK-SAME: (%[[A:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4x6xf32>)
// CHECK-SAME: #tile_graph.device<"toy", [
// CHECK-SAME: #tile_graph.level<"dram", 0 : i64, 0 : i64, 2.500000e+01 : f64, 64 : i64, 1 : i64, "explicit", 1.250000e+01 : f64, 32 : i64>
// CHECK-SAME: #tile_graph.level<"l2", 1 : i64, 65536 : i64, 2.000000e+02 : f64, 64 : i64, 2 : i64, "cache", 0.000000e+00 : f64, 0 : i64>
// CHECK-SAME: ], 2 : i64, 1 : i64, 1 : i64, 256 : i64, 1.000000e+02 : f64, [#tile_graph.peak<"f64", 5.000000e+01 : f64>]
// CHECK-SAME: [#tile_graph.instruction<"mma", [16, 8, 16], "f16", "f32", 8.000000e+02 : f64>,
// CHECK-SAME: #tile_graph.library<"product.f16", "product", "f16", 6.000000e+02 : f64>]>
// CHECK: %[[M:.*]] = "tile_graph.operator"() ({
// CHECK: linalg.fill
// CHECK: %[[ROOT:.*]] = linalg.matmul ins(%[[A]], %[[B]]
// CHECK: gpu.yield %[[ROOT]] : tensor<8x6xf32>
// CHECK: }) {op_name = "matmul"} : () -> tensor<8x6xf32>
// CHECK: %[[E:.*]] = "tile_graph.connect"(%[[M]]) {level = "dram"}
// CHECK-SAME: : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK: "tile_graph.operator"() ({
// CHECK: linalg.exp ins(%[[E]]
func.func @graph(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x6xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>)
        -> tensor<8x6xf32>
    %product = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>)
        outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
    gpu.yield %product : tensor<8x6xf32>
  }) {op_name = "matmul"} : () -> tensor<8x6xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8x6xf32>
    %exp = linalg.exp ins(%1 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
        -> tensor<8x6xf32>
    gpu.yield %exp : tensor<8x6xf32>
  }) {op_name = "exp"} : () -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @scheduled
// CHECK: "tile_graph.subgraph"() ({
// CHECK: {op_name = "matmul", tile = #tile_graph.tile<[4, 6]>}
// CHECK: "tile_graph.connect"(%{{.*}}) {level = "l2"}
// CHECK: }) {footprint = 288 : i64, implementation = "generated", level = "l2",
// CHECK-SAME: reduction_step = 2 : i64, subgraph_name = "matmul_exp",
// CHECK-SAME: tile = #tile_graph.tile<[4, 6]>,
// CHECK-SAME: traffic_after = 416 : i64, traffic_before = 800 : i64}
func.func @scheduled(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %1 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8x6xf32>
      %product = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>)
          outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
      gpu.yield %product : tensor<8x6xf32>
    }) {op_name = "matmul", tile = #tile_graph.tile<[4, 6]>} : () -> tensor<8x6xf32>
    %2 = "tile_graph.connect"(%1) {level = "l2"}
        : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8x6xf32>
      %exp = linalg.exp ins(%2 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
          -> tensor<8x6xf32>
      gpu.yield %exp : tensor<8x6xf32>
    }) {op_name = "exp"} : () -> tensor<8x6xf32>
    gpu.yield %3 : tensor<8x6xf32>
  }) {subgraph_name = "matmul_exp", level = "l2", tile = #tile_graph.tile<[4, 6]>,
      reduction_step = 2, implementation = "generated", footprint = 288,
      traffic_before = 800, traffic_after = 416} : () -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// Two results may have two types.
//
// CHECK-LABEL: func.func @two_results
// CHECK: %[[R:.*]]:2 = "tile_graph.operator"() ({
// CHECK: gpu.yield %{{.*}}#0, %{{.*}}#1 : tensor<4xf32>, tensor<4xi64>
// CHECK: }) {op_name = "both"} : () -> (tensor<4xf32>, tensor<4xi64>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @two_results(%a: tensor<4xf32>, %b: tensor<4xi64>)
    -> (tensor<4xf32>, tensor<4xi64>) attributes {tile_graph.device = #device} {
  %0:2 = "tile_graph.operator"() ({
    %x = tensor.empty() : tensor<4xf32>
    %y = tensor.empty() : tensor<4xi64>
    %both:2 = linalg.generic {
        indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                         affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}
        ins(%a, %b : tensor<4xf32>, tensor<4xi64>)
        outs(%x, %y : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%p: f32, %q: i64, %r: f32, %s: i64):
      linalg.yield %p, %q : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    gpu.yield %both#0, %both#1 : tensor<4xf32>, tensor<4xi64>
  }) {op_name = "both"} : () -> (tensor<4xf32>, tensor<4xi64>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi64>
}

// Externals, reshapes and constants stand beside operators as they are.
//
// CHECK-LABEL: func.func @beside_operators
// CHECK: arith.constant dense<
// CHECK: call @external_0
// CHECK: tensor.expand_shape
// CHECK: "tile_graph.connect"
// CHECK: tensor.concat
func.func private @external_0(tensor<6xf32>) -> tensor<6xf32>
    attributes {magweld.external = "sort"}
func.func @beside_operators(%a: tensor<6xf32>) -> tensor<2x6xf32>
    attributes {tile_graph.device = #device} {
  %table = arith.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]> : tensor<1x6xf32>
  %0 = func.call @external_0(%a) : (tensor<6xf32>) -> tensor<6xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [1, 6]
      : tensor<6xf32> into tensor<1x6xf32>
  %2 = "tile_graph.connect"(%1) {level = "dram"}
      : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %3 = "tile_graph.operator"() ({
    %both = tensor.concat dim(0) %2, %table
        : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
    gpu.yield %both : tensor<2x6xf32>
  }) {op_name = "cat"} : () -> tensor<2x6xf32>
  return %3 : tensor<2x6xf32>
}

// A pad or a fill is the root where there is nothing else.
//
// CHECK-LABEL: func.func @secondary_roots
// CHECK: tensor.pad
// CHECK: linalg.fill
func.func @secondary_roots(%a: tensor<6xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %padded = tensor.pad %a low[1] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<6xf32> to tensor<8xf32>
    gpu.yield %padded : tensor<8xf32>
  }) {op_name = "pad"} : () -> tensor<8xf32>
  %1 = "tile_graph.operator"() ({
    %one = arith.constant 1.0 : f32
    %empty = tensor.empty() : tensor<4xf32>
    %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<4xf32>)
        -> tensor<4xf32>
    gpu.yield %ones : tensor<4xf32>
  }) {op_name = "ones"} : () -> tensor<4xf32>
  return %0, %1 : tensor<8xf32>, tensor<4xf32>
}

// A plan: two tiles, and in each a loop over blocks of what is summed.
//
// CHECK-LABEL: func.func @planned
// CHECK: %[[R:.*]] = "tile_graph.for_tiles"() ({
// CHECK-NEXT: ^bb0(%[[I:.*]]: index):
// CHECK: %[[SUM:.*]] = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 0 : i64, 16 : i64, 64 : i64>} : () -> tensor<4xf32>
// CHECK: %[[START:.*]] = "tile_graph.compute"() ({
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[SUM]] : tensor<4xf32>)
// CHECK: }) {op_name = "sum"} : () -> tensor<4xf32>
// CHECK: %[[ALL:.*]] = scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SO_FAR:.*]] = %[[START]])
// CHECK: %[[X:.*]] = "tile_graph.load"(%arg0, %[[I]], %[[J]]) {moved = 256 : i64, offsets = #{{.*}}, place = #tile_graph.place<"l2", 64 : i64, 64 : i64, 64 : i64>, sizes = [4, 4], transactions = 4 : i64} : (tensor<8x12xf32>, index, index) -> tensor<4x4xf32>
// CHECK: %[[MORE:.*]] = "tile_graph.compute"() ({
// CHECK: linalg.reduce ins(%[[X]] : tensor<4x4xf32>) outs(%[[SO_FAR]] : tensor<4xf32>)
// CHECK: "tile_graph.release"(%[[X]]) : (tensor<4x4xf32>) -> ()
// CHECK: scf.yield %[[MORE]]
// CHECK: "tile_graph.barrier"() : () -> ()
// CHECK: "tile_graph.store"(%[[ALL]], %[[SUM]], %[[I]]) {moved = 64 : i64, offsets = #{{.*}}, result = 0 : i64, sizes = [4], transactions = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, index) -> ()
// CHECK: "tile_graph.release"(%[[SUM]])
// CHECK: gpu.yield
// CHECK: }) {extents = [8], footprint = 128 : i64, level = "l2", operators = ["sum"], steps = [4], subgraph_name = "rows"} : () -> tensor<8xf32>
func.func @planned(%x: tensor<8x12xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %sum = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 0, 16, 64>}
        : () -> tensor<4xf32>
    %start = "tile_graph.compute"() ({
      %zero = arith.constant 0.0 : f32
      %init = linalg.fill ins(%zero : f32) outs(%sum : tensor<4xf32>) -> tensor<4xf32>
      gpu.yield %init : tensor<4xf32>
    }) {op_name = "sum"} : () -> tensor<4xf32>
    %first = arith.constant 0 : index
    %last = arith.constant 12 : index
    %block = arith.constant 4 : index
    %all = scf.for %j = %first to %last step %block iter_args(%so_far = %start)
        -> (tensor<4xf32>) {
      %part = "tile_graph.load"(%x, %i, %j) {offsets = affine_map<(i, j) -> (i, j)>,
          sizes = [4, 4], place = #tile_graph.place<"l2", 64, 64, 64>, moved = 256,
          transactions = 4} : (tensor<8x12xf32>, index, index) -> tensor<4x4xf32>
      %more = "tile_graph.compute"() ({
        %r = linalg.reduce ins(%part : tensor<4x4xf32>) outs(%so_far : tensor<4xf32>)
            dimensions = [1] (%p: f32, %q: f32) {
          %s = arith.addf %p, %q : f32
          linalg.yield %s : f32
        }
        gpu.yield %r : tensor<4xf32>
      }) {op_name = "sum"} : () -> tensor<4xf32>
      "tile_graph.release"(%part) : (tensor<4x4xf32>) -> ()
      scf.yield %more : tensor<4xf32>
    }
    "tile_graph.barrier"() : () -> ()
    "tile_graph.store"(%all, %sum, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 64, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    "tile_graph.release"(%sum) : (tensor<4xf32>) -> ()
    gpu.yield
  }) {subgraph_name = "rows", level = "l2", extents = [8], steps = [4],
      operators = ["sum"], footprint = 128} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A product that matrix instructions compute.
// CHECK-LABEL: func.func @fragment(
// CHECK:         tile_graph.fragment = #tile_graph.fragment<"mfma", [16, 16, 16], [4, 4], [16], [0, 0], [2, 2]>
func.func @fragment(%a: memref<32x16xf32>, %b: memref<16x32xf32>, %c: memref<32x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<32x16xf32>, memref<16x32xf32>) outs(%c : memref<32x32xf32>)
      attrs = {tile_graph.fragment = #tile_graph.fragment<"mfma", [16, 16, 16], [4, 4], [16], [0, 0], [2, 2]>} {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}

// CHECK-LABEL: func.func @shifted(
// CHECK:         "tile_graph.shift"(%{{.*}}) {offsets = [0, 64]} : (tensor<8x128xf32>) -> tensor<8x128xf32>
func.func @shifted(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = "tile_graph.shift"(%x) {offsets = [0, 64]} : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
