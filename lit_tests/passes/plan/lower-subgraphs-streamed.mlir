// RUN: magweld-opt --plan-execution --lower-subgraphs %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The second product accumulates over blocks of the first one; the last one is smaller.
//
// CHECK-LABEL: func.func @products(
// CHECK-LABEL: func.func @exponentials(
// CHECK-LABEL: func.func @either(
func.func @products(%a: tensor<512x64xf32>, %b: tensor<64x100xf32>,
    %d: tensor<100x64xf32>) -> tensor<512x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %first = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<512x100xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x100xf32>)
          -> tensor<512x100xf32>
      %r = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x100xf32>)
          outs(%init : tensor<512x100xf32>) -> tensor<512x100xf32>
      gpu.yield %r : tensor<512x100xf32>
    }) {op_name = "first"} : () -> tensor<512x100xf32>
    %c = "tile_graph.connect"(%first) {level = "l2", stream = 1 : i64}
        : (tensor<512x100xf32>) -> tensor<512x100xf32>
    %second = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<512x64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x64xf32>)
          -> tensor<512x64xf32>
      %r = linalg.matmul ins(%c, %d : tensor<512x100xf32>, tensor<100x64xf32>)
          outs(%init : tensor<512x64xf32>) -> tensor<512x64xf32>
      gpu.yield %r : tensor<512x64xf32>
    }) {op_name = "second"} : () -> tensor<512x64xf32>
    gpu.yield %second : tensor<512x64xf32>
  }) {subgraph_name = "two", level = "l2", implementation = "generated",
      stream_step = 48, tile = #tile_graph.tile<[32, 64]>}
      : () -> tensor<512x64xf32>
  return %out : tensor<512x64xf32>
}

// What is subtracted is the maximum so far, from the lowest number on. The sum is
// multiplied by exp(old - new) before it goes on, and at last by what leads from the
// maximum to what was to be subtracted.
func.func @exponentials(%x: tensor<64x96xf32>) -> tensor<64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x96xf32>
      %r = linalg.tanh ins(%x : tensor<64x96xf32>) outs(%empty : tensor<64x96xf32>)
          -> tensor<64x96xf32>
      gpu.yield %r : tensor<64x96xf32>
    }) {op_name = "scores"} : () -> tensor<64x96xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %2 = "tile_graph.connect"(%0) {level = "l2", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %3 = "tile_graph.operator"() ({
      %low = arith.constant 0xFF800000 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%1 : tensor<64x96xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.maximumf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "maximum"} : () -> tensor<64xf32>
    %4 = "tile_graph.connect"(%3) {level = "l2"} : (tensor<64xf32>) -> tensor<64xf32>
    %5 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x96xf32>
      %r = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%2, %4 : tensor<64x96xf32>, tensor<64xf32>)
          outs(%empty : tensor<64x96xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.subf %p, %q : f32
        linalg.yield %d : f32
      } -> tensor<64x96xf32>
      gpu.yield %r : tensor<64x96xf32>
    }) {op_name = "difference"} : () -> tensor<64x96xf32>
    %6 = "tile_graph.connect"(%5) {level = "register", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %7 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x96xf32>
      %r = linalg.exp ins(%6 : tensor<64x96xf32>) outs(%empty : tensor<64x96xf32>)
          -> tensor<64x96xf32>
      gpu.yield %r : tensor<64x96xf32>
    }) {op_name = "exponential"} : () -> tensor<64x96xf32>
    %8 = "tile_graph.connect"(%7) {level = "register", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %9 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
          -> tensor<64xf32>
      %r = linalg.reduce ins(%8 : tensor<64x96xf32>) outs(%init : tensor<64xf32>)
          dimensions = [1] (%p: f32, %q: f32) {
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      gpu.yield %r : tensor<64xf32>
    }) {op_name = "sum"} : () -> tensor<64xf32>
    gpu.yield %9 : tensor<64xf32>
  }) {subgraph_name = "exponentials", level = "l2", implementation = "generated",
      stream_step = 48, tile = #tile_graph.tile<[32]>} : () -> tensor<64xf32>
  return %out : tensor<64xf32>
}

// Two dimensions go over the edge to a sum of both: the second one in blocks.
func.func @either(%x: tensor<64x96xf32>) -> tensor<f32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x96xf32>
      %r = linalg.tanh ins(%x : tensor<64x96xf32>) outs(%empty : tensor<64x96xf32>)
          -> tensor<64x96xf32>
      gpu.yield %r : tensor<64x96xf32>
    }) {op_name = "values"} : () -> tensor<64x96xf32>
    %1 = "tile_graph.connect"(%0) {level = "l2", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %2 = "tile_graph.connect"(%0) {level = "l2", stream = 1 : i64}
        : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %3 = "tile_graph.operator"() ({
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<f32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
      %r = linalg.generic {indexing_maps = [#all, #all, affine_map<(d0, d1) -> ()>],
                           iterator_types = ["reduction", "reduction"]}
          ins(%1, %2 : tensor<64x96xf32>, tensor<64x96xf32>) outs(%init : tensor<f32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %d = arith.mulf %p, %q : f32
        %s = arith.addf %d, %o : f32
        linalg.yield %s : f32
      } -> tensor<f32>
      gpu.yield %r : tensor<f32>
    }) {op_name = "sum"} : () -> tensor<f32>
    gpu.yield %3 : tensor<f32>
  }) {subgraph_name = "either", level = "l2", implementation = "generated",
      stream_step = 48, tile = #tile_graph.tile<[]>} : () -> tensor<f32>
  return %out : tensor<f32>
}

// CHECK:       func.func private @kernel_0(
// CHECK:         %[[START:.+]] = linalg.fill
// CHECK:         %[[WHOLE:.+]] = scf.for %[[K:.+]] = %c0{{.*}} to %c96{{.*}} step %c48{{.*}} iter_args(%[[SUM:.+]] = %[[START]])
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[K]]] [64, 48] [1, 1]
// CHECK:           %[[FIRST:.+]] = linalg.matmul {{.+}} -> tensor<32x48xf32>
// CHECK:           tensor.extract_slice %{{.+}}[%[[K]], 0] [48, 64] [1, 1]
// CHECK:           %[[NEXT:.+]] = linalg.matmul ins(%[[FIRST]], %{{.+}}) outs(%[[SUM]] : tensor<32x64xf32>)
// CHECK:           scf.yield %[[NEXT]]
// CHECK:         %[[REST:.+]] = linalg.matmul {{.+}} -> tensor<32x4xf32>
// CHECK:         %[[ALL:.+]] = linalg.matmul ins(%[[REST]], %{{.+}}) outs(%[[WHOLE]] : tensor<32x64xf32>)
// CHECK:         tensor.parallel_insert_slice %[[ALL]]

// CHECK:       func.func private @kernel_1(
// CHECK:         %[[LOWEST:.+]] = arith.constant -3.40282347E+38 : f32
// CHECK:         %[[TOP:.+]] = linalg.fill ins(%[[LOWEST]]
// CHECK:         %[[DONE:.+]]:3 = scf.for {{.+}} iter_args(%[[MAX:.+]] = %{{.+}}, %[[SUM:.+]] = %{{.+}}, %[[OLD:.+]] = %[[TOP]])
// CHECK:           %[[SCORES:.+]] = linalg.tanh
// CHECK:           %[[NEXT:.+]] = linalg.reduce ins(%[[SCORES]] : tensor<32x48xf32>) outs(%[[MAX]] :
// CHECK:           %[[FACTOR:.+]] = linalg.generic {{.+}} ins(%[[OLD]], %[[NEXT]] :
// CHECK:             %[[HIGHER:.+]] = arith.maximumf %[[A:.+]], %
// CHECK-NEXT:        %[[FALLS:.+]] = arith.subf %[[A]], %[[HIGHER]]
// CHECK-NEXT:        math.exp %[[FALLS]]
// CHECK:           %[[NEW:.+]] = linalg.generic {{.+}} ins(%[[NEXT]] : tensor<32xf32>) outs(%[[OLD]] :
// CHECK:             arith.maximumf
// CHECK:           %[[SCALED:.+]] = linalg.generic {{.+}} ins(%[[FACTOR]] : tensor<32xf32>) outs(%[[SUM]] :
// CHECK:             arith.mulf
// CHECK:           %[[TOTAL:.+]] = linalg.generic {{.+}} ins(%[[SCORES]], %[[NEW]] : {{.+}}) outs(%[[SCALED]] :
// CHECK:             arith.subf
// CHECK-NEXT:        math.exp
// CHECK-NEXT:        arith.addf
// CHECK:           scf.yield %[[NEXT]], %[[TOTAL]], %[[NEW]]
// CHECK:         %[[LAST:.+]] = linalg.generic {{.+}} ins(%[[DONE]]#2, %[[DONE]]#0 :
// CHECK:           math.exp
// CHECK:         %[[RESULT:.+]] = linalg.generic {{.+}} ins(%[[LAST]] : tensor<32xf32>) outs(%[[DONE]]#1 :
// CHECK:         tensor.parallel_insert_slice %[[RESULT]]

// CHECK:       func.func private @kernel_2(
// CHECK:         scf.for %[[K:.+]] = %c0{{.*}} to %c96{{.*}} step %c48
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[K]]] [64, 48] [1, 1]
