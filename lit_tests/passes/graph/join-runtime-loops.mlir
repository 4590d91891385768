// RUN: magweld-opt --split-input-file --join-runtime-loops --canonicalize --cse %s | filecheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#one = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// A sum of each row and what is divided by it: one loop along both extents. What each
// row has one element of goes along.
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROWS:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[ONE:.+]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[LAST:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[X:.+]]: tensor<41x43x8xf32>, %[[W:.+]]: tensor<8xf32>)
// CHECK-DAG:     %[[IN:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<41x43x8xf32> into tensor<1763x8xf32>
// CHECK-DAG:     %[[FILL:.+]] = linalg.fill {{.+}} -> tensor<1763xf32>
// CHECK:         %[[SUM:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROWS]]], iterator_types = ["parallel", "reduction"]} ins(%[[IN]] : tensor<1763x8xf32>) outs(%[[FILL]] : tensor<1763xf32>)
// CHECK:         %[[KEPT:.+]] = tensor.expand_shape %[[SUM]] {{\[}}[0, 1]] output_shape [1763, 1]
// CHECK:         %[[OUT:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ONE]], #[[LAST]], #[[ALL]]], iterator_types = ["parallel", "parallel"]} ins(%[[IN]], %[[KEPT]], %[[W]] : tensor<1763x8xf32>, tensor<1763x1xf32>, tensor<8xf32>)
// CHECK:         %[[R:.+]] = tensor.expand_shape %[[OUT]] {{\[}}[0, 1], [2]] output_shape [41, 43, 8]
// CHECK:         return %[[R]]
module attributes {magweld.stand_ins = array<i64: 41, 43>} {
  func.func @rows(%x: tensor<41x43x8xf32>, %w: tensor<8xf32>) -> tensor<41x43x8xf32> {
    %zero = arith.constant 0.0 : f32
    %0 = tensor.empty() : tensor<41x43xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<41x43xf32>) -> tensor<41x43xf32>
    %2 = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<41x43x8xf32>) outs(%1 : tensor<41x43xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.addf %in, %out : f32
      linalg.yield %5 : f32
    } -> tensor<41x43xf32>
    %kept = tensor.expand_shape %2 [[0], [1, 2]] output_shape [41, 43, 1] : tensor<41x43xf32> into tensor<41x43x1xf32>
    %3 = tensor.empty() : tensor<41x43x8xf32>
    %4 = linalg.generic {indexing_maps = [#all, #one, #last, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %kept, %w : tensor<41x43x8xf32>, tensor<41x43x1xf32>, tensor<8xf32>) outs(%3 : tensor<41x43x8xf32>) {
    ^bb0(%in: f32, %sum: f32, %weight: f32, %out: f32):
      %5 = arith.divf %in, %sum : f32
      %6 = arith.mulf %5, %weight : f32
      linalg.yield %6 : f32
    } -> tensor<41x43x8xf32>
    return %4 : tensor<41x43x8xf32>
  }
}

// -----

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
#second = affine_map<(d0, d1, d2) -> (d1, d2)>
#summed = affine_map<(d0, d1, d2) -> (d0, d2)>

// An operand in another order, one that has one of the two extents alone, and a sum
// along one of them want two loops.
// CHECK-LABEL: func.func @two_loops(
// CHECK-NOT:     shape
// CHECK:         return
module attributes {magweld.stand_ins = array<i64: 41, 43>} {
  func.func @two_loops(%x: tensor<41x43x8xf32>, %t: tensor<43x41x8xf32>, %p: tensor<43x8xf32>) -> (tensor<41x43x8xf32>, tensor<41x43x8xf32>, tensor<41x8xf32>) {
    %zero = arith.constant 0.0 : f32
    %0 = tensor.empty() : tensor<41x43x8xf32>
    %1 = linalg.generic {indexing_maps = [#all, #turned, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : tensor<41x43x8xf32>, tensor<43x41x8xf32>) outs(%0 : tensor<41x43x8xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %5 = arith.addf %a, %b : f32
      linalg.yield %5 : f32
    } -> tensor<41x43x8xf32>
    %2 = linalg.generic {indexing_maps = [#all, #second, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %p : tensor<41x43x8xf32>, tensor<43x8xf32>) outs(%0 : tensor<41x43x8xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %5 = arith.addf %a, %b : f32
      linalg.yield %5 : f32
    } -> tensor<41x43x8xf32>
    %3 = tensor.empty() : tensor<41x8xf32>
    %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<41x8xf32>) -> tensor<41x8xf32>
    %sum = linalg.generic {indexing_maps = [#all, #summed], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : tensor<41x43x8xf32>) outs(%4 : tensor<41x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %5 = arith.addf %a, %out : f32
      linalg.yield %5 : f32
    } -> tensor<41x8xf32>
    return %1, %2, %sum : tensor<41x43x8xf32>, tensor<41x43x8xf32>, tensor<41x8xf32>
  }
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>

// Constant extents stay, also beside one that a call tells.
// CHECK-LABEL: func.func @constant(
// CHECK-NOT:     shape
// CHECK:         return
module attributes {magweld.stand_ins = array<i64: 41, 43>} {
  func.func @constant(%x: tensor<41x8xf32>) -> tensor<41x8xf32> {
    %0 = tensor.empty() : tensor<41x8xf32>
    %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<41x8xf32>) outs(%0 : tensor<41x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %2 = arith.negf %a : f32
      linalg.yield %2 : f32
    } -> tensor<41x8xf32>
    return %1 : tensor<41x8xf32>
  }
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>

// Without sizes that a call tells nothing changes.
// CHECK-LABEL: func.func @no_stand_ins(
// CHECK-NOT:     shape
// CHECK:         return
func.func @no_stand_ins(%x: tensor<41x43xf32>) -> tensor<41x43xf32> {
  %0 = tensor.empty() : tensor<41x43xf32>
  %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<41x43xf32>) outs(%0 : tensor<41x43xf32>) {
  ^bb0(%a: f32, %out: f32):
    %2 = arith.negf %a : f32
    linalg.yield %2 : f32
  } -> tensor<41x43xf32>
  return %1 : tensor<41x43xf32>
}
