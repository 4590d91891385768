// RUN: magweld-opt --extract-subgraphs %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Operators connected in the cache become one subgraph; its edges go with them.
//
// CHECK-LABEL: func.func @group(
// CHECK-NEXT:    %[[R:.+]] = "tile_graph.subgraph"() ({
// CHECK:           %[[S:.+]] = "tile_graph.operator"() ({
// CHECK:           }) {op_name = "sum"}
// CHECK-NEXT:      %[[E:.+]] = "tile_graph.connect"(%[[S]]) {level = "l2"}
// CHECK-NEXT:      %[[D:.+]] = "tile_graph.operator"() ({
// CHECK:             linalg.generic {{.+}} ins(%{{.+}}, %[[E]] :
// CHECK:           }) {op_name = "divide"}
// CHECK-NEXT:      gpu.yield %[[D]]
// CHECK-NEXT:    }) {implementation = "generated", level = "l2", subgraph_name = "subgraph_0"} : () -> tensor<64x128xf32>
// CHECK-NEXT:    return %[[R]]
func.func @group(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
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
  return %2 : tensor<64x128xf32>
}

// An operator on its own is a subgraph of one and says how it is computed; the edge
// between two subgraphs stays.
//
// CHECK-LABEL: func.func @single(
// CHECK-NEXT:    %[[P:.+]] = "tile_graph.subgraph"() ({
// CHECK:           }) {implementation = "library", op_name = "matmul"}
// CHECK:         }) {implementation = "library", level = "dram", subgraph_name = "subgraph_0"}
// CHECK-NEXT:    %[[E:.+]] = "tile_graph.connect"(%[[P]]) {level = "dram"}
// CHECK-NEXT:    %[[R:.+]] = "tile_graph.subgraph"() ({
// CHECK:           linalg.exp ins(%[[E]] :
// CHECK:         }) {implementation = "generated", level = "dram", subgraph_name = "subgraph_1"}
// CHECK-NEXT:    return %[[R]]
func.func @single(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    %r = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "matmul", implementation = "library"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// The subgraph has the outermost of the levels of its edges.
//
// CHECK-LABEL: func.func @two_levels(
// CHECK:           "tile_graph.connect"(%{{.+}}) {level = "register"}
// CHECK:           "tile_graph.connect"(%{{.+}}) {level = "l2"}
// CHECK:         }) {implementation = "generated", level = "l2", subgraph_name = "subgraph_0"}
// CHECK-NOT:     "tile_graph.subgraph"
// CHECK:         return
func.func @two_levels(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "register"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "second"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%2) {level = "l2"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%3 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "third"} : () -> tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// What is read elsewhere is a second result; its reader moves behind the subgraph.
//
// CHECK-LABEL: func.func @two_results(
// CHECK-NEXT:    %[[R:.+]]:2 = "tile_graph.subgraph"() ({
// CHECK:           %[[F:.+]] = "tile_graph.operator"() ({
// CHECK:           }) {op_name = "first"}
// CHECK:           %[[L:.+]] = "tile_graph.operator"() ({
// CHECK:           }) {op_name = "last"}
// CHECK-NEXT:      gpu.yield %[[L]], %[[F]]
// CHECK:         %[[E:.+]] = "tile_graph.connect"(%[[R]]#1) {level = "dram"}
// CHECK:         %[[O:.+]] = "tile_graph.subgraph"() ({
// CHECK:             linalg.exp ins(%[[E]]
// CHECK:           }) {op_name = "elsewhere"}
// CHECK:         return %[[R]]#0, %[[O]]
func.func @two_results(%a: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "elsewhere"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%0) {level = "l2"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%3 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "last"} : () -> tensor<64x64xf32>
  return %4, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}
