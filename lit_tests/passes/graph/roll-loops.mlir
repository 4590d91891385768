// RUN: magweld-opt %s --roll-loops="least-operators=4 body-operators=1" --split-input-file | filecheck %s

// Row i of a tensor, a value that is the same, and the result before.
//
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[ALL:.+]]: tensor<5x3xf32>, %[[WEIGHT:.+]]: tensor<3xf32>, %[[FIRST:.+]]: tensor<3xf32>)
// CHECK:         %[[R:.+]] = call @loop_0(%[[FIRST]], %[[ALL]], %[[WEIGHT]])
// CHECK:         return %[[R]]
// CHECK:       func.func private @loop_body_0(%[[H:[^:]+]]: tensor<3xf32>, %[[X:[^:]+]]: tensor<3xf32>, %[[W:[^:]+]]: tensor<3xf32>)
// CHECK:         %[[M:.+]] = linalg.mul ins(%[[H]], %[[X]] :
// CHECK:         %[[A:.+]] = linalg.add ins(%[[M]], %[[W]] :
// CHECK-NEXT:    return %[[A]]
// CHECK:       func.func private @loop_0(tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>)
// CHECK-SAME:    -> tensor<3xf32> attributes {magweld.loop = {
// CHECK-SAME:    fed_by = array<i64: 0, -1, -1>, function = @loop_body_0,
// CHECK-SAME:    stacked = array<i1: false>, starts = array<i64: 0, 3, 0>,
// CHECK-SAME:    strides = array<i64: 0, 3, 0>, trips = 4 : i64}}
func.func @rows(%x: tensor<5x3xf32>, %w: tensor<3xf32>, %h: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %x1 = tensor.extract_slice %x[1, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<3xf32>
  %m1 = linalg.mul ins(%h, %x1 : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %h1 = linalg.add ins(%m1, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %x2 = tensor.extract_slice %x[2, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<3xf32>
  %m2 = linalg.mul ins(%h1, %x2 : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %h2 = linalg.add ins(%m2, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %x3 = tensor.extract_slice %x[3, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<3xf32>
  %m3 = linalg.mul ins(%h2, %x3 : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %h3 = linalg.add ins(%m3, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %x4 = tensor.extract_slice %x[4, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<3xf32>
  %m4 = linalg.mul ins(%h3, %x4 : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %h4 = linalg.add ins(%m4, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %h4 : tensor<3xf32>
}

// -----

// All results leave: their concatenation is the stack of them. Columns are rows of a
// transposed copy.
//
// CHECK-LABEL: func.func @columns(
// CHECK-SAME:      %[[ALL:.+]]: tensor<2x4xf32>, %[[FIRST:.+]]: tensor<2xf32>)
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[ALL]] : tensor<2x4xf32>)
// CHECK:         %[[S:.+]] = call @loop_0(%[[FIRST]], %[[T]])
// CHECK-NOT:     tensor.concat
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[S]]
// CHECK:         %[[C:.+]] = tensor.collapse_shape %[[E]]
// CHECK:         %[[R:.+]] = tensor.expand_shape %[[C]]
// CHECK:         return %[[R]]
// CHECK:       func.func private @loop_0(
// CHECK-SAME:    -> tensor<4x2xf32> attributes
// CHECK-SAME:    stacked = array<i1: true>
// CHECK-SAME:    strides = array<i64: 0, 2>
func.func @columns(%x: tensor<2x4xf32>, %h: tensor<2xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %x0 = tensor.extract_slice %x[0, 0] [2, 1] [1, 1] : tensor<2x4xf32> to tensor<2xf32>
  %h0 = linalg.mul ins(%h, %x0 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %x1 = tensor.extract_slice %x[0, 1] [2, 1] [1, 1] : tensor<2x4xf32> to tensor<2xf32>
  %h1 = linalg.mul ins(%h0, %x1 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %x2 = tensor.extract_slice %x[0, 2] [2, 1] [1, 1] : tensor<2x4xf32> to tensor<2xf32>
  %h2 = linalg.mul ins(%h1, %x2 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %x3 = tensor.extract_slice %x[0, 3] [2, 1] [1, 1] : tensor<2x4xf32> to tensor<2xf32>
  %h3 = linalg.mul ins(%h2, %x3 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %r0 = tensor.expand_shape %h0 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %r1 = tensor.expand_shape %h1 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %r2 = tensor.expand_shape %h2 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %r3 = tensor.expand_shape %h3 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %r = tensor.concat dim(0) %r0, %r1, %r2, %r3 : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

// Two results of each iteration in turn: the stacks are joined behind their first
// dimension, with two operands in place of eight.
//
// CHECK-LABEL: func.func @in_turn(
// CHECK:         %[[S:.+]]:2 = call @loop_0(
// CHECK:         %[[A:.+]] = tensor.expand_shape %[[S]]#1 {{.*}} into tensor<4x1x1x2xf32>
// CHECK:         %[[B:.+]] = tensor.expand_shape %[[S]]#0 {{.*}} into tensor<4x1x1x2xf32>
// CHECK:         %[[C:.+]] = tensor.concat dim(1) %[[A]], %[[B]] : {{.*}} -> tensor<4x2x1x2xf32>
// CHECK:         %[[D:.+]] = tensor.collapse_shape %[[C]] {{.*}} into tensor<8x1x2xf32>
// CHECK-NOT:     tensor.concat
// CHECK:       func.func private @loop_0(
// CHECK-SAME:    trips = 4
func.func @in_turn(%h: tensor<1x2xf32>) -> tensor<8x2xf32> {
  %e = tensor.empty() : tensor<1x2xf32>
  %a0 = linalg.exp ins(%h : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b0 = linalg.tanh ins(%a0 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a1 = linalg.exp ins(%b0 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b1 = linalg.tanh ins(%a1 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a2 = linalg.exp ins(%b1 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b2 = linalg.tanh ins(%a2 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a3 = linalg.exp ins(%b2 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b3 = linalg.tanh ins(%a3 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = tensor.concat dim(0) %a0, %b0, %a1, %b1, %a2, %b2, %a3, %b3 : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<8x2xf32>
  return %r : tensor<8x2xf32>
}

// -----

// In another order only what follows each other is joined.
//
// CHECK-LABEL: func.func @out_of_turn(
// CHECK:         tensor.concat dim(0) %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}} : (
// CHECK-SAME:      tensor<1x2xf32>, tensor<1x2xf32>, tensor<4x2xf32>, tensor<1x2xf32>)
// CHECK:       func.func private @loop_0(
// CHECK-SAME:    trips = 4
func.func @out_of_turn(%h: tensor<1x2xf32>) -> tensor<7x2xf32> {
  %e = tensor.empty() : tensor<1x2xf32>
  %a0 = linalg.exp ins(%h : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b0 = linalg.tanh ins(%a0 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a1 = linalg.exp ins(%b0 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b1 = linalg.tanh ins(%a1 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a2 = linalg.exp ins(%b1 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b2 = linalg.tanh ins(%a2 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %a3 = linalg.exp ins(%b2 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %b3 = linalg.tanh ins(%a3 : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = tensor.concat dim(0) %b0, %a0, %a0, %b0, %a1, %b1, %a0 : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<7x2xf32>
  return %r : tensor<7x2xf32>
}

// -----

// A constant that changes in the middle of bodies is read twice in one of them: the
// iterations differ although each reads constants alone.
//
// CHECK-NOT:   magweld.loop
// CHECK-LABEL: func.func @other_constants(
#id = affine_map<(d) -> (d)>
func.func @other_constants(%h: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %a = arith.constant 2.0 : f32
  %b = arith.constant 3.0 : f32
  %h1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%h : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %i, %a : f32
    %n = arith.addf %m, %b : f32
    linalg.yield %n : f32
  } -> tensor<2xf32>
  %h2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%h1 : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %i, %a : f32
    %n = arith.addf %m, %a : f32
    linalg.yield %n : f32
  } -> tensor<2xf32>
  %h3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%h2 : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %i, %a : f32
    %n = arith.addf %m, %b : f32
    linalg.yield %n : f32
  } -> tensor<2xf32>
  %h4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%h3 : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %i, %a : f32
    %n = arith.addf %m, %b : f32
    linalg.yield %n : f32
  } -> tensor<2xf32>
  return %h4 : tensor<2xf32>
}

// -----

// What is read is from two iterations before.
//
// CHECK-NOT:   magweld.loop
// CHECK-LABEL: func.func @two_back(
func.func @two_back(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %c = linalg.mul ins(%a, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %d = linalg.mul ins(%b, %c : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %f = linalg.mul ins(%c, %d : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %g = linalg.mul ins(%d, %f : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %h = linalg.mul ins(%f, %g : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %h : tensor<2xf32>
}

// -----

// Operands in another order are another operation.
//
// CHECK-NOT:   magweld.loop
// CHECK-LABEL: func.func @reordered(
func.func @reordered(%w: tensor<2xf32>, %h: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %1 = linalg.sub ins(%h, %w : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %2 = linalg.sub ins(%1, %w : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %3 = linalg.sub ins(%w, %2 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %4 = linalg.sub ins(%3, %w : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %5 = linalg.sub ins(%4, %w : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}

// -----

// Each iteration reads another weight: the function says so, and names the node.
//
// CHECK-LABEL: func.func @other_weights(
// CHECK-SAME:    attributes {magweld.written_out = [{count = 4 : i64,
// CHECK-SAME:    id = "loop-other-values", node = "add", operators = 1 : i64}]}
// CHECK-NOT:   magweld.loop
func.func @other_weights(%x: tensor<2xf32>, %a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.add ins(%x, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32> loc("add")
  %1 = linalg.add ins(%0, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %2 = linalg.add ins(%1, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %3 = linalg.add ins(%2, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
