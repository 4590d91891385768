// RUN: magweld-opt --hoist-expand %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// Every operand is split along the dimensions that it has, the bias along the last.
// CHECK: #[[ALL:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[ROW:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:      %[[X:.+]]: tensor<64x24xf32>, %[[B:.+]]: tensor<24xf32>)
// CHECK-DAG:     %[[XE:.+]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2]] output_shape [64, 3, 8]
// CHECK-DAG:     %[[BE:.+]] = tensor.expand_shape %[[B]] {{\[}}[0, 1]] output_shape [3, 8]
// CHECK:         %[[SUM:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]], iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME:      ins(%[[XE]], %[[BE]] : tensor<64x3x8xf32>, tensor<3x8xf32>)
// CHECK-NOT:     tensor.expand_shape
// CHECK:         return %[[SUM]]
func.func @bias(%x: tensor<64x24xf32>, %b: tensor<24xf32>) -> tensor<64x3x8xf32> {
  %empty = tensor.empty() : tensor<64x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<64x24xf32>, tensor<24xf32>)
      outs(%empty : tensor<64x24xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %1 = arith.addf %p, %q : f32
    linalg.yield %1 : f32
  } -> tensor<64x24xf32>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xf32> into tensor<64x3x8xf32>
  return %e : tensor<64x3x8xf32>
}

// What others read too would be computed twice.
// CHECK-LABEL: func.func @two_readers(
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[R]]
// CHECK:         return %[[R]], %[[E]]
func.func @two_readers(%x: tensor<64x24xf32>)
    -> (tensor<64x24xf32>, tensor<64x3x8xf32>) {
  %empty = tensor.empty() : tensor<64x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x24xf32>) outs(%empty : tensor<64x24xf32>) {
  ^bb0(%p: f32, %q: f32):
    %1 = arith.negf %p : f32
    linalg.yield %1 : f32
  } -> tensor<64x24xf32>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xf32> into tensor<64x3x8xf32>
  return %0, %e : tensor<64x24xf32>, tensor<64x3x8xf32>
}

// CHECK-LABEL: func.func @other_order(
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         tensor.expand_shape %[[R]]
func.func @other_order(%x: tensor<24x64xf32>) -> tensor<64x3x8xf32> {
  %empty = tensor.empty() : tensor<64x24xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<24x64xf32>) outs(%empty : tensor<64x24xf32>) {
  ^bb0(%p: f32, %q: f32):
    %1 = arith.negf %p : f32
    linalg.yield %1 : f32
  } -> tensor<64x24xf32>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xf32> into tensor<64x3x8xf32>
  return %e : tensor<64x3x8xf32>
}

// The number of a loop would be another one.
// CHECK-LABEL: func.func @loop_number(
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         tensor.expand_shape %[[R]]
func.func @loop_number(%x: tensor<64x24xi64>) -> tensor<64x3x8xi64> {
  %empty = tensor.empty() : tensor<64x24xi64>
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x24xi64>) outs(%empty : tensor<64x24xi64>) {
  ^bb0(%p: i64, %q: i64):
    %i = linalg.index 1 : index
    %1 = arith.index_cast %i : index to i64
    %2 = arith.addi %p, %1 : i64
    linalg.yield %2 : i64
  } -> tensor<64x24xi64>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xi64> into tensor<64x3x8xi64>
  return %e : tensor<64x3x8xi64>
}

// What the body reads of the result before is the same in the other shape.
// CHECK-LABEL: func.func @reads_fill(
// CHECK:         %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
// CHECK:         %[[F:.+]] = linalg.fill ins(%[[ONE]] : f32) outs(%{{.+}} : tensor<64x3x8xf32>)
// CHECK:         linalg.generic {{.+}} outs(%[[F]] : tensor<64x3x8xf32>)
func.func @reads_fill(%x: tensor<64x24xf32>) -> tensor<64x3x8xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<64x24xf32>
  %fill = linalg.fill ins(%one : f32) outs(%empty : tensor<64x24xf32>) -> tensor<64x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x24xf32>) outs(%fill : tensor<64x24xf32>) {
  ^bb0(%p: f32, %r: f32):
    %1 = arith.addf %p, %r : f32
    linalg.yield %1 : f32
  } -> tensor<64x24xf32>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xf32> into tensor<64x3x8xf32>
  return %e : tensor<64x3x8xf32>
}

// A constant that the body reads is no fill.
// CHECK-LABEL: func.func @reads_constant(
// CHECK:         linalg.generic
// CHECK:         tensor.expand_shape
func.func @reads_constant(%x: tensor<64x24xf32>) -> tensor<64x3x8xf32> {
  %ones = arith.constant dense<1.0> : tensor<64x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x24xf32>) outs(%ones : tensor<64x24xf32>) {
  ^bb0(%p: f32, %r: f32):
    %1 = arith.addf %p, %r : f32
    linalg.yield %1 : f32
  } -> tensor<64x24xf32>
  %e = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 8]
      : tensor<64x24xf32> into tensor<64x3x8xf32>
  return %e : tensor<64x3x8xf32>
}

// One loop runs along both extents that a call tells.
// CHECK-LABEL: func.func @sizes_of_the_call(
// CHECK:         linalg.generic
// CHECK:         tensor.expand_shape
module attributes {magweld.stand_ins = array<i64: 41, 43>} {
  func.func @sizes_of_the_call(%x: tensor<1763x24xf32>) -> tensor<41x43x24xf32> {
    %empty = tensor.empty() : tensor<1763x24xf32>
    %0 = linalg.generic {indexing_maps = [#all, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<1763x24xf32>) outs(%empty : tensor<1763x24xf32>) {
    ^bb0(%p: f32, %r: f32):
      %1 = arith.negf %p : f32
      linalg.yield %1 : f32
    } -> tensor<1763x24xf32>
    %e = tensor.expand_shape %0 [[0, 1], [2]] output_shape [41, 43, 24]
        : tensor<1763x24xf32> into tensor<41x43x24xf32>
    return %e : tensor<41x43x24xf32>
  }
}
