// RUN: magweld-opt --plan-execution %s | filecheck %s
// RUN: magweld-opt --canonicalize --cse --plan-execution --canonicalize --cse %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>

// The difference is in the nest of the exponential, which two read: it is a tile, and the
// quotient is written over it. A product computes none of its operands.
//
// CHECK-LABEL: func.func @softmax(
// CHECK:         %[[X:.+]] = "tile_graph.load"(%arg0
// CHECK:         %[[M:.+]] = "tile_graph.load"(%arg1
// CHECK:         %[[E:.+]] = "tile_graph.allocate"()
// CHECK:         %[[EXP:.+]] = "tile_graph.compute"() ({
// CHECK:           linalg.generic {{.+}} ins(%[[X]], %[[M]] : {{.+}}) outs(%[[E]] :
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        arith.subf
// CHECK-NEXT:        math.exp
// CHECK-NEXT:        linalg.yield
// CHECK:         }) {op_name = "exp"}
// CHECK:         %[[SUM:.+]] = "tile_graph.compute"() ({
// CHECK:           linalg.reduce ins(%[[EXP]] :
// CHECK:         %[[HALF:.+]] = "tile_graph.compute"() ({
// CHECK:           linalg.generic {{.+}} ins(%[[EXP]], %[[SUM]] : {{.+}}) outs(%[[EXP]] :
// CHECK:         }) {op_name = "divide"}
// CHECK:         "tile_graph.compute"() ({
// CHECK:           linalg.matmul ins(%[[HALF]], %
// CHECK:         }) {op_name = "product"}
// CHECK-NOT:     "tile_graph.compute"()
// CHECK:         operators = ["difference", "exp", "sum", "divide", "product"]
func.func @softmax(%x: tensor<64x128xf32>, %max: tensor<64xf32>,
    %w: tensor<128x16xf32>) -> tensor<64x16xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %max : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.subf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "difference"} : () -> tensor<64x128xf32>
    %1 = "tile_graph.connect"(%0) {level = "register"}
        : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.exp ins(%1 : tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>)
          -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "exp"} : () -> tensor<64x128xf32>
    %3 = "tile_graph.connect"(%2) {level = "l2"}
        : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %8 = "tile_graph.connect"(%2) {level = "l2"}
        : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %4 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%3 : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    %5 = "tile_graph.connect"(%4) {level = "l2"} : (tensor<64xf32>) -> tensor<64xf32>
    %6 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%8, %5 : tensor<64x128xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.divf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "divide"} : () -> tensor<64x128xf32>
    %7 = "tile_graph.connect"(%6) {level = "l2"}
        : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %9 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x16xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x16xf32>)
          -> tensor<64x16xf32>
      %r = linalg.matmul ins(%7, %w : tensor<64x128xf32>, tensor<128x16xf32>)
          outs(%init : tensor<64x16xf32>) -> tensor<64x16xf32>
      gpu.yield %r : tensor<64x16xf32>
    }) {op_name = "product"} : () -> tensor<64x16xf32>
    gpu.yield %9 : tensor<64x16xf32>
  }) {subgraph_name = "softmax", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[8, 16]>} : () -> tensor<64x16xf32>
  return %out : tensor<64x16xf32>
}

// Indices, transposed readers, fills and constants are part of the one operation; what
// is read twice in the same way is loaded once.
//
// CHECK-LABEL: func.func @turned(
// CHECK:         %[[X:.+]] = "tile_graph.load"(%arg0
// CHECK-NOT:     "tile_graph.load"
// CHECK:         "tile_graph.compute"() ({
// CHECK:           linalg.generic {{.+}} ins(%[[X]] : tensor<8x128xf32>) outs(
// CHECK-NEXT:      ^bb0(%[[P:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:        %[[I:.+]] = linalg.index 1
// CHECK-NEXT:        %[[N:.+]] = arith.index_cast %[[I]]
// CHECK-NEXT:        %[[F:.+]] = arith.sitofp %[[N]]
// CHECK-NEXT:        %[[A:.+]] = arith.addf %[[F]], %{{.*}}cst
// CHECK-NEXT:        %[[B:.+]] = arith.addf %[[A]], %[[P]]
// CHECK-NEXT:        arith.mulf %[[B]], %[[P]]
// CHECK:             linalg.yield
// CHECK-NOT:     "tile_graph.compute"()
// CHECK:         operators = ["place", "product"]
func.func @turned(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %two = arith.constant 2.0 : f32
      %empty = tensor.empty() : tensor<128x64xf32>
      %twos = linalg.fill ins(%two : f32) outs(%empty : tensor<128x64xf32>)
          -> tensor<128x64xf32>
      %r = linalg.generic {indexing_maps = [#turned, #all, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %twos : tensor<64x128xf32>, tensor<128x64xf32>)
          outs(%empty : tensor<128x64xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %i = linalg.index 0 : index
        %n = arith.index_cast %i : index to i64
        %f = arith.sitofp %n : i64 to f32
        %a = arith.addf %f, %q : f32
        %b = arith.addf %a, %p : f32
        linalg.yield %b : f32
      } -> tensor<128x64xf32>
      gpu.yield %r : tensor<128x64xf32>
    }) {op_name = "place"} : () -> tensor<128x64xf32>
    %1 = "tile_graph.connect"(%0) {level = "register"}
        : (tensor<128x64xf32>) -> tensor<128x64xf32>
    %2 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x128xf32>
      %r = linalg.generic {indexing_maps = [#turned, #all, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%1, %x : tensor<128x64xf32>, tensor<64x128xf32>)
          outs(%empty : tensor<64x128xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.mulf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x128xf32>
      gpu.yield %r : tensor<64x128xf32>
    }) {op_name = "product"} : () -> tensor<64x128xf32>
    gpu.yield %2 : tensor<64x128xf32>
  }) {subgraph_name = "turned", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[8, 128]>} : () -> tensor<64x128xf32>
  return %out : tensor<64x128xf32>
}

// What is summed is read along a loop of one iteration that nothing else is read along: that
// loop is left out, as no operand would tell its extent.
//
// CHECK-LABEL: func.func @unit_loop(
// CHECK:         linalg.generic {indexing_maps = [#[[ROWS:.+]], #[[ROW:.+]]], iterator_types = ["parallel", "reduction"]} ins(%{{.+}} : tensor<{{[0-9]+}}x8xf32>)
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        arith.mulf
// CHECK-NEXT:        math.exp
// CHECK-NEXT:        arith.addf
// CHECK:         operators = ["square", "exponential", "sum"]
func.func @unit_loop(%x: tensor<6x8xf32>) -> tensor<6xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<1x6x8xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>,
                           affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
          iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x : tensor<6x8xf32>) outs(%empty : tensor<1x6x8xf32>) {
      ^bb0(%p: f32, %o: f32):
        %d = arith.mulf %p, %p : f32
        linalg.yield %d : f32
      } -> tensor<1x6x8xf32>
      gpu.yield %r : tensor<1x6x8xf32>
    }) {op_name = "square"} : () -> tensor<1x6x8xf32>
    %1 = "tile_graph.connect"(%0) {level = "register"}
        : (tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    %m = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<1x6x8xf32>
      %r = linalg.exp ins(%1 : tensor<1x6x8xf32>) outs(%empty : tensor<1x6x8xf32>)
          -> tensor<1x6x8xf32>
      gpu.yield %r : tensor<1x6x8xf32>
    }) {op_name = "exponential"} : () -> tensor<1x6x8xf32>
    %n = "tile_graph.connect"(%m) {level = "register"}
        : (tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    %2 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<6xf32>
      %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
                           affine_map<(d0, d1, d2) -> (d1)>],
          iterator_types = ["reduction", "parallel", "reduction"]}
          ins(%n : tensor<1x6x8xf32>) outs(%filled : tensor<6xf32>) {
      ^bb0(%p: f32, %o: f32):
        %d = arith.addf %p, %o : f32
        linalg.yield %d : f32
      } -> tensor<6xf32>
      gpu.yield %r : tensor<6xf32>
    }) {op_name = "sum"} : () -> tensor<6xf32>
    gpu.yield %2 : tensor<6xf32>
  }) {subgraph_name = "unit_loop", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[3]>} : () -> tensor<6xf32>
  return %out : tensor<6xf32>
}

// The constant alone has the extent of the loop that is reduced: it is read.
//
// CHECK-LABEL: func.func @filled(
// CHECK:         "tile_graph.compute"() ({
// CHECK:           linalg.generic {{.+}} ins(%{{.+}} : tensor<3x8xf32>) outs(%{{.+}} :
// CHECK-NEXT:      ^bb0(%{{.+}}: f32, %{{.+}}: f32):
func.func @filled() -> tensor<6xf32> attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %ones = arith.constant dense<1.0> : tensor<6x8xf32>
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<6xf32>
      %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                           affine_map<(d0, d1) -> (d0)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%ones : tensor<6x8xf32>) outs(%filled : tensor<6xf32>) {
      ^bb0(%p: f32, %o: f32):
        %d = arith.addf %p, %o : f32
        linalg.yield %d : f32
      } -> tensor<6xf32>
      gpu.yield %r : tensor<6xf32>
    }) {op_name = "sum"} : () -> tensor<6xf32>
    gpu.yield %0 : tensor<6xf32>
  }) {subgraph_name = "filled", level = "l2", implementation = "generated",
      tile = #tile_graph.tile<[3]>} : () -> tensor<6xf32>
  return %out : tensor<6xf32>
}
