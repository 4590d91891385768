// RUN: magweld-opt --hoist-collapse %s | filecheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>
#first = affine_map<(d0, d1, d2) -> (d0)>

// Two operations in a row on the dimensions of the product; the bias has none of those
// that are joined.
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[LAST:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:      %[[P:.+]]: tensor<196x24xf32>, %[[B:.+]]: tensor<24xf32>)
// CHECK-NOT:     shape
// CHECK:         %[[SUM:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[LAST]], #[[ALL]]], iterator_types = ["parallel", "parallel"]} ins(%[[P]], %[[B]] : tensor<196x24xf32>, tensor<24xf32>)
// CHECK:         %[[MINUS:.+]] = linalg.generic {{.+}} ins(%[[SUM]] : tensor<196x24xf32>)
// CHECK:         return %[[MINUS]] : tensor<196x24xf32>
func.func @bias(%p: tensor<196x24xf32>, %b: tensor<24xf32>) -> tensor<196x24xf32> {
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [14, 14, 24] : tensor<196x24xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #last, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %b : tensor<14x14x24xf32>, tensor<24xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %1 = arith.addf %x, %y : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %2 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<14x14x24xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %z: f32):
    %1 = arith.negf %x : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %c : tensor<196x24xf32>
}

// An argument is looked at in another shape.
// CHECK-LABEL: func.func @argument(
// CHECK-SAME:      %[[P:.+]]: tensor<196x24xf32>, %[[A:.+]]: tensor<14x14x24xf32>)
// CHECK:         %[[C:.+]] = tensor.collapse_shape %[[A]] {{\[}}[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
// CHECK:         linalg.generic {{.+}} ins(%[[P]], %[[C]] : tensor<196x24xf32>, tensor<196x24xf32>)
func.func @argument(%p: tensor<196x24xf32>, %a: tensor<14x14x24xf32>) -> tensor<196x24xf32> {
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [14, 14, 24] : tensor<196x24xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %a : tensor<14x14x24xf32>, tensor<14x14x24xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %1 = arith.addf %x, %y : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %c : tensor<196x24xf32>
}

// Left alone: an operand with some of the joined dimensions,
// CHECK-LABEL: func.func @part(
// CHECK:         tensor.expand_shape
// CHECK:         linalg.generic
// CHECK:         tensor.collapse_shape
func.func @part(%p: tensor<196x24xf32>, %b: tensor<14xf32>) -> tensor<196x24xf32> {
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [14, 14, 24] : tensor<196x24xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %b : tensor<14x14x24xf32>, tensor<14xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %1 = arith.addf %x, %y : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %c : tensor<196x24xf32>
}

// what was not split so,
// CHECK-LABEL: func.func @otherwise(
// CHECK:         tensor.expand_shape
// CHECK:         linalg.generic
// CHECK:         tensor.collapse_shape
func.func @otherwise(%p: tensor<14x336xf32>) -> tensor<196x24xf32> {
  %e = tensor.expand_shape %p [[0], [1, 2]] output_shape [14, 14, 24] : tensor<14x336xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e : tensor<14x14x24xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %z: f32):
    %1 = arith.negf %x : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %c : tensor<196x24xf32>
}

// and what others read on the split dimensions.
// CHECK-LABEL: func.func @two_readers(
// CHECK:         tensor.expand_shape
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         %[[C:.+]] = tensor.collapse_shape %[[R]]
// CHECK:         return %[[R]], %[[C]]
func.func @two_readers(%p: tensor<196x24xf32>) -> (tensor<14x14x24xf32>, tensor<196x24xf32>) {
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [14, 14, 24] : tensor<196x24xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e : tensor<14x14x24xf32>) outs(%empty : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %z: f32):
    %1 = arith.negf %x : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %0, %c : tensor<14x14x24xf32>, tensor<196x24xf32>
}

// What the body reads of the result before is the same in the other shape.
// CHECK-LABEL: func.func @reads_fill(
// CHECK:         %[[F:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<196x24xf32>)
// CHECK:         linalg.generic {{.+}} outs(%[[F]] : tensor<196x24xf32>)
func.func @reads_fill(%p: tensor<196x24xf32>) -> tensor<196x24xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [14, 14, 24] : tensor<196x24xf32> into tensor<14x14x24xf32>
  %empty = tensor.empty() : tensor<14x14x24xf32>
  %fill = linalg.fill ins(%one : f32) outs(%empty : tensor<14x14x24xf32>) -> tensor<14x14x24xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e : tensor<14x14x24xf32>) outs(%fill : tensor<14x14x24xf32>) {
  ^bb0(%x: f32, %z: f32):
    %1 = arith.addf %x, %z : f32
    linalg.yield %1 : f32
  } -> tensor<14x14x24xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<14x14x24xf32> into tensor<196x24xf32>
  return %c : tensor<196x24xf32>
}
