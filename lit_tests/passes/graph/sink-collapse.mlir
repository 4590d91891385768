// RUN: magweld-opt --sink-collapse %s | filecheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#first = affine_map<(d0, d1, d2) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#number = affine_map<() -> ()>
#behind = affine_map<(d0, d1, d2) -> (d1, d2)>

// An activation, two operations that read what is made with a number for each group: both
// follow it on its dimensions.
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[OUTER:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @activation(
// CHECK:         %[[N:.+]] = linalg.generic
// CHECK:         arith.subf
// CHECK-NOT:     shape
// CHECK:         %[[T:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]]], {{.+}} ins(%[[N]] : tensor<8x4x24xf32>)
// CHECK:         math.tanh
// CHECK-NOT:     shape
// CHECK:         %[[M:.+]] = linalg.generic {{.+}} ins(%[[N]], %[[T]] : tensor<8x4x24xf32>, tensor<8x4x24xf32>)
// CHECK:         arith.mulf
// CHECK:         %[[C:.+]] = tensor.collapse_shape %[[M]] {{\[}}[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
// CHECK:         return %[[C]]
func.func @activation(%x: tensor<8x4x24xf32>, %mean: tensor<8xf32>) -> tensor<32x24xf32> {
  %split = tensor.empty() : tensor<8x4x24xf32>
  %joined = tensor.empty() : tensor<32x24xf32>
  %n = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<8x4x24xf32>, tensor<8xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<32x24xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<32x24xf32>
  %m = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c, %t : tensor<32x24xf32>, tensor<32x24xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<32x24xf32>
  return %m : tensor<32x24xf32>
}

// An argument, and a number for each row, are looked at in the other shape.
// CHECK-LABEL: func.func @arguments(
// CHECK-SAME:      %[[R:[^:]+]]: tensor<32x24xf32>, %[[S:[^ ]+]]: tensor<32xf32>
// CHECK-DAG:     %[[RE:.+]] = tensor.expand_shape %[[R]] {{\[}}[0, 1], [2]]
// CHECK-DAG:     %[[SE:.+]] = tensor.expand_shape %[[S]] {{\[}}[0, 1]]
// CHECK:         linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[OUTER]], #[[ALL]]], {{.+}} ins(%{{.+}}, %[[RE]], %[[SE]] : tensor<8x4x24xf32>, tensor<8x4x24xf32>, tensor<8x4xf32>)
// CHECK:         tensor.collapse_shape
func.func @arguments(%x: tensor<8x4x24xf32>, %mean: tensor<8xf32>, %r: tensor<32x24xf32>, %s: tensor<32xf32>) -> tensor<32x24xf32> {
  %split = tensor.empty() : tensor<8x4x24xf32>
  %joined = tensor.empty() : tensor<32x24xf32>
  %n = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<8x4x24xf32>, tensor<8xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows, #row, #rows], iterator_types = ["parallel", "parallel"]} ins(%c, %r, %s : tensor<32x24xf32>, tensor<32x24xf32>, tensor<32xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.mulf %0, %d : f32
    linalg.yield %1 : f32
  } -> tensor<32x24xf32>
  return %t : tensor<32x24xf32>
}

// Left alone: what another operation reads on joined dimensions,
// CHECK-LABEL: func.func @two_readers(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         %[[T:.+]] = linalg.generic {{.+}} ins(%[[C]] : tensor<32x24xf32>)
// CHECK:         return %[[C]], %[[T]]
func.func @two_readers(%x: tensor<8x4x24xf32>, %mean: tensor<8xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %split = tensor.empty() : tensor<8x4x24xf32>
  %joined = tensor.empty() : tensor<32x24xf32>
  %n = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<8x4x24xf32>, tensor<8xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<32x24xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<32x24xf32>
  return %c, %t : tensor<32x24xf32>, tensor<32x24xf32>
}

// what reads a product too, which would be parted from it,
// CHECK-LABEL: func.func @product(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.+}} ins(%[[C]], %{{.+}} : tensor<32x24xf32>, tensor<32x24xf32>)
func.func @product(%x: tensor<8x4x24xf32>, %mean: tensor<8xf32>, %p: tensor<32x16xf32>, %q: tensor<16x24xf32>) -> tensor<32x24xf32> {
  %zero = arith.constant 0.0 : f32
  %split = tensor.empty() : tensor<8x4x24xf32>
  %joined = tensor.empty() : tensor<32x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%joined : tensor<32x24xf32>) -> tensor<32x24xf32>
  %r = linalg.matmul ins(%p, %q : tensor<32x16xf32>, tensor<16x24xf32>) outs(%f : tensor<32x24xf32>) -> tensor<32x24xf32>
  %n = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<8x4x24xf32>, tensor<8xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c, %r : tensor<32x24xf32>, tensor<32x24xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<32x24xf32>
  return %t : tensor<32x24xf32>
}

// rows that are joined, which are longer so,
// CHECK-LABEL: func.func @joined_rows(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.+}} ins(%[[C]] : tensor<8x96xf32>)
func.func @joined_rows(%x: tensor<8x4x24xf32>, %mean: tensor<8xf32>) -> tensor<8x96xf32> {
  %split = tensor.empty() : tensor<8x4x24xf32>
  %joined = tensor.empty() : tensor<8x96xf32>
  %n = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<8x4x24xf32>, tensor<8xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0], [1, 2]] : tensor<8x4x24xf32> into tensor<8x96xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<8x96xf32>) outs(%joined : tensor<8x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x96xf32>
  return %t : tensor<8x96xf32>
}

// and what comes from outside in both shapes.
// CHECK-LABEL: func.func @outside(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.+}} ins(%[[C]] : tensor<32x24xf32>)
func.func @outside(%x: tensor<8x4x24xf32>) -> tensor<32x24xf32> {
  %joined = tensor.empty() : tensor<32x24xf32>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<32x24xf32>) outs(%joined : tensor<32x24xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<32x24xf32>
  return %t : tensor<32x24xf32>
}

// One number has no rows.
// CHECK-LABEL: func.func @one_number(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.+}} ins(%[[C]] : tensor<f32>)
func.func @one_number(%x: tensor<1x1xf32>) -> tensor<f32> {
  %split = tensor.empty() : tensor<1x1xf32>
  %joined = tensor.empty() : tensor<f32>
  %n = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x1xf32>) outs(%split : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x1xf32>
  %c = tensor.collapse_shape %n [] : tensor<1x1xf32> into tensor<f32>
  %t = linalg.generic {indexing_maps = [#number, #number], iterator_types = []} ins(%c : tensor<f32>) outs(%joined : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %t : tensor<f32>
}

// What repeats the value has more dimensions than the value.
// CHECK-LABEL: func.func @repeated(
// CHECK:         %[[C:.+]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.+}} ins(%[[C]] : tensor<32x24xf32>)
func.func @repeated(%x: tensor<8x4x24xf32>) -> tensor<5x32x24xf32> {
  %split = tensor.empty() : tensor<8x4x24xf32>
  %whole = tensor.empty() : tensor<5x32x24xf32>
  %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<8x4x24xf32>) outs(%split : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x24xf32>
  %c = tensor.collapse_shape %n [[0, 1], [2]] : tensor<8x4x24xf32> into tensor<32x24xf32>
  %t = linalg.generic {indexing_maps = [#behind, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c : tensor<32x24xf32>) outs(%whole : tensor<5x32x24xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5x32x24xf32>
  return %t : tensor<5x32x24xf32>
}
