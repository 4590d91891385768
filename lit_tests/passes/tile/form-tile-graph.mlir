// RUN: magweld-opt --form-tile-graph=device=a100 %s | filecheck %s

// Each operation is an operator with its fill; what one makes for another passes through
// a connect at the outermost level. Empty tensors are no inputs.
//
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[A:.+]]: tensor<8x4xf32>, %[[B:.+]]: tensor<4x6xf32>)
// CHECK-SAME: attributes {tile_graph.device = #tile_graph.device<"a100", [#tile_graph.level<"global",
// CHECK-NEXT: %[[M:.+]] = "tile_graph.operator"() ({
// CHECK-NEXT:   %[[ZERO:.+]] = arith.constant 0.0
// CHECK-NEXT:   %[[E:.+]] = tensor.empty()
// CHECK-NEXT:   %[[F:.+]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]]
// CHECK-NEXT:   %[[P:.+]] = linalg.matmul ins(%[[A]], %[[B]] {{.*}} outs(%[[F]]
// CHECK-NEXT:   gpu.yield %[[P]] : tensor<8x6xf32>
// CHECK-NEXT: }) {op_name = "matmul_0"} : () -> tensor<8x6xf32>
// CHECK-NEXT: %[[C:.+]] = "tile_graph.connect"(%[[M]]) {level = "global"}
// CHECK-NEXT: %[[X:.+]] = "tile_graph.operator"() ({
// CHECK-NEXT:   tensor.empty()
// CHECK-NEXT:   linalg.exp ins(%[[C]]
// CHECK:      }) {op_name = "exp_0"}
// CHECK-NEXT: %[[D:.+]] = "tile_graph.connect"(%[[X]]) {level = "global"}
// CHECK-NEXT: %[[Y:.+]] = "tile_graph.operator"() ({
// CHECK:        linalg.exp ins(%[[D]]
// CHECK:      }) {op_name = "exp_1"}
// CHECK-NEXT: return %[[Y]]
func.func @chain(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>)
    outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = linalg.exp ins(%0 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  %2 = linalg.exp ins(%1 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// An operator has one edge to each reader, also where that one reads twice.
//
// CHECK-LABEL: func.func @two_reads
// CHECK:      %[[X:.+]] = "tile_graph.operator"()
// CHECK:      %[[C:.+]] = "tile_graph.connect"(%[[X]])
// CHECK-NEXT: "tile_graph.operator"()
// CHECK:        linalg.generic {{.*}} ins(%[[C]], %[[C]] :
// CHECK:      %[[D:.+]] = "tile_graph.connect"(%[[X]])
// CHECK-NEXT: "tile_graph.operator"()
// CHECK:        linalg.log ins(%[[D]] :
func.func @two_reads(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %1 = linalg.generic {
      indexing_maps = [#id, affine_map<(i, j) -> (j, i)>, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%0, %0 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %2 = linalg.log ins(%0 : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %3 = linalg.add ins(%1, %2 : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// The padding of a convolution is part of it.
//
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: (%[[X:.+]]: tensor<1x3x8x8xf32>, %[[W:.+]]: tensor<4x3x3x3xf32>)
// CHECK-NEXT: %[[R:.+]] = "tile_graph.operator"() ({
// CHECK:        %[[P:.+]] = tensor.pad %[[X]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:        linalg.conv_2d_nchw_fchw {{.*}}ins(%[[P]], %[[W]]
// CHECK:      }) {op_name = "conv_2d_nchw_fchw_0"}
// CHECK-NEXT: return %[[R]]
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x8x8xf32>)
    -> tensor<1x4x8x8xf32>
  %0 = linalg.conv_2d_nchw_fchw
    ins(%pad, %w : tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>)
    outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: func.func @pad_of_a_pooling
// CHECK:      "tile_graph.operator"() ({
// CHECK:        %[[P:.+]] = tensor.pad
// CHECK:        linalg.pooling_nchw_max {{.*}}ins(%[[P]],
func.func @pad_of_a_pooling(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %lowest : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x3x8x8xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<1x3x8x8xf32>)
    -> tensor<1x3x8x8xf32>
  %0 = linalg.pooling_nchw_max
    ins(%pad, %window : tensor<1x3x10x10xf32>, tensor<3x3xf32>)
    outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// That of anything else moves bytes and is an operator of its own.
//
// CHECK-LABEL: func.func @pad_of_a_map
// CHECK:      %[[P:.+]] = "tile_graph.operator"() ({
// CHECK:        tensor.pad
// CHECK:      }) {op_name = "pad_0"}
// CHECK-NEXT: %[[C:.+]] = "tile_graph.connect"(%[[P]])
// CHECK-NEXT: "tile_graph.operator"() ({
// CHECK-NOT:    tensor.pad
// CHECK:        linalg.exp ins(%[[C]]
func.func @pad_of_a_map(%x: tensor<8xf32>) -> tensor<10xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<8xf32> to tensor<10xf32>
  %empty = tensor.empty() : tensor<10xf32>
  %0 = linalg.exp ins(%pad : tensor<10xf32>) outs(%empty : tensor<10xf32>)
    -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// Reshapes, calls and constants stay as they are, values reach operators from behind them
// through connects; constants are data and need none.
//
// CHECK-LABEL: func.func @views_calls_and_data
// CHECK:      %[[T:.+]] = arith.constant dense<
// CHECK-NEXT: %[[X:.+]] = "tile_graph.operator"()
// CHECK:      %[[V:.+]] = tensor.expand_shape %[[X]]
// CHECK-NEXT: %[[S:.+]] = call @external_0(%[[V]])
// CHECK-NEXT: %[[C:.+]] = "tile_graph.connect"(%[[V]])
// CHECK-NEXT: %[[D:.+]] = "tile_graph.connect"(%[[S]])
// CHECK-NEXT: %[[Y:.+]] = "tile_graph.operator"()
// CHECK:        linalg.add ins(%[[C]], %[[D]]
// CHECK:      %[[F:.+]] = "tile_graph.connect"(%[[Y]])
// CHECK-NEXT: "tile_graph.operator"()
// CHECK-NEXT:   tensor.concat dim(0) %[[F]], %[[T]]
// CHECK:      }) {op_name = "concat_0"}
func.func private @external_0(tensor<4x6xf32>) -> tensor<4x6xf32>
    attributes {magweld.external = "sort"}
func.func @views_calls_and_data(%a: tensor<24xf32>) -> tensor<5x6xf32> {
  %table = arith.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]> : tensor<1x6xf32>
  %e = tensor.empty() : tensor<24xf32>
  %0 = linalg.exp ins(%a : tensor<24xf32>) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [4, 6]
    : tensor<24xf32> into tensor<4x6xf32>
  %2 = func.call @external_0(%1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %3 = linalg.add ins(%1, %2 : tensor<4x6xf32>, tensor<4x6xf32>)
    outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = tensor.concat dim(0) %3, %table
    : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}

// CHECK-LABEL: func.func @two_results
// CHECK:      %[[R:.+]]:2 = "tile_graph.operator"() ({
// CHECK:        %[[BOTH:.+]]:2 = linalg.generic
// CHECK:        gpu.yield %[[BOTH]]#0, %[[BOTH]]#1 : tensor<4xf32>, tensor<4xi64>
// CHECK:      return %[[R]]#0, %[[R]]#1
func.func @two_results(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %x = tensor.empty() : tensor<4xf32>
  %y = tensor.empty() : tensor<4xi64>
  %0:2 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                       affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
    ins(%a : tensor<4xf32>) outs(%x, %y : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%p: f32, %u: f32, %v: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %p, %n : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi64>
}

// What leaves the graph has data: fills become operators, empty tensors are filled.
//
// CHECK-LABEL: func.func @results_without_operator
// CHECK-SAME: (%[[A:.+]]: tensor<2xf32>)
// CHECK-NEXT: %[[SAME:.+]] = arith.constant dense<2.0
// CHECK-NEXT: %[[ONES:.+]] = "tile_graph.operator"()
// CHECK:      }) {op_name = "fill_0"}
// CHECK-NEXT: %[[ANY:.+]] = "tile_graph.operator"()
// CHECK:        linalg.fill
// CHECK:      }) {op_name = "empty_0"} : () -> tensor<2xi64>
// CHECK-NEXT: return %[[A]], %[[SAME]], %[[ONES]], %[[ANY]]
func.func @results_without_operator(%a: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>) {
  %one = arith.constant 1.0 : f32
  %same = arith.constant dense<2.0> : tensor<2xf32>
  %empty = tensor.empty() : tensor<2xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %any = tensor.empty() : tensor<2xi64>
  return %a, %same, %ones, %any
    : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>
}

// A box that linalg reads in place belongs to its readers; one that leaves the graph is
// moved by an operator of its own.
//
// CHECK-LABEL: func.func @slices
// CHECK-SAME: (%[[A:.+]]: tensor<4x8xf32>)
// CHECK-NEXT: "tile_graph.operator"() ({
// CHECK-NEXT:   tensor.extract_slice %[[A]][0, 4] [4, 4] [1, 1]
// CHECK-NEXT:   tensor.empty
// CHECK-NEXT:   linalg.exp
// CHECK:      }) {op_name = "exp_0"}
// CHECK-NEXT: "tile_graph.operator"() ({
// CHECK-NEXT:   tensor.extract_slice %[[A]][0, 0] [4, 4] [1, 1]
// CHECK:      }) {op_name = "extract_slice_0"}
func.func @slices(%a: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %read = tensor.extract_slice %a[0, 4] [4, 4] [1, 1]
    : tensor<4x8xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.exp ins(%read : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)
    -> tensor<4x4xf32>
  %given = tensor.extract_slice %a[0, 0] [4, 4] [1, 1]
    : tensor<4x8xf32> to tensor<4x4xf32>
  return %0, %given : tensor<4x4xf32>, tensor<4x4xf32>
}

// Weights that are kept beside the module are data, as importers write them.
// CHECK-LABEL: func.func @resource
// CHECK:      %[[W:.+]] = arith.constant dense_resource<weight>
// CHECK:      "tile_graph.operator"()
// CHECK:        linalg.add ins(%{{.+}}, %[[W]]
func.func @resource(%a: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense_resource<weight> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.add ins(%a, %w : tensor<2xf32>, tensor<2xf32>)
    outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      weight: "0x040000000000803F00000040"
    }
  }
#-}

// A concatenation reads slices in place: they are part of its operator.
//
// CHECK-LABEL: func.func @concat_of_slices
// CHECK-NEXT: "tile_graph.operator"()
// CHECK:        %[[R:.+]] = tensor.extract_slice
// CHECK:        %[[L:.+]] = tensor.extract_slice
// CHECK:        tensor.concat dim(1) %[[R]], %[[L]]
// CHECK:      }) {op_name = "concat_0"}
// CHECK-NOT:  tile_graph.operator
func.func @concat_of_slices(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %l = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %r = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %c = tensor.concat dim(1) %r, %l
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}
