// RUN: magweld-opt --split-input-file --simplify-generic %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The positions that come with a maximum go where nobody reads them.
// CHECK-LABEL: func.func @unread_result(
// CHECK-SAME:      %[[X:.+]]: tensor<4x8xf32>, %[[MAX:.+]]: tensor<4xf32>, %{{.+}}: tensor<4xi64>)
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK-SAME:        ins(%[[X]] : tensor<4x8xf32>) outs(%[[MAX]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.+]]: f32, %[[OUT:.+]]: f32):
// CHECK-NEXT:      %[[M:.+]] = arith.maximumf %[[IN]], %[[OUT]] : f32
// CHECK-NEXT:      linalg.yield %[[M]] : f32
// CHECK-NOT:     linalg.index
// CHECK:         return %[[R]]
func.func @unread_result(%x: tensor<4x8xf32>, %max: tensor<4xf32>, %position: tensor<4xi64>)
    -> tensor<4xf32> {
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%max, %position : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %m: f32, %p: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.maximumf %in, %m : f32
    %3 = arith.cmpf ogt, %in, %m : f32
    %4 = arith.select %3, %1, %p : i64
    linalg.yield %2, %4 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The maximum stays: the positions are computed from it.
// CHECK-LABEL: func.func @needed_by_the_other(
// CHECK:         %[[R:.+]]:2 = linalg.generic
// CHECK:         return %[[R]]#1
func.func @needed_by_the_other(%x: tensor<4x8xf32>, %max: tensor<4xf32>, %position: tensor<4xi64>)
    -> tensor<4xi64> {
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%max, %position : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %m: f32, %p: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.maximumf %in, %m : f32
    %3 = arith.cmpf ogt, %in, %m : f32
    %4 = arith.select %3, %1, %p : i64
    linalg.yield %2, %4 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#1 : tensor<4xi64>
}

// -----

#all = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @constant_operand(
// CHECK-SAME:      %[[C:.+]]: tensor<4xi1>, %[[X:.+]]: tensor<4xf32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         linalg.generic
// CHECK-SAME:        ins(%[[C]], %[[X]] : tensor<4xi1>, tensor<4xf32>) outs(%[[INIT]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.+]]: i1, %[[V:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:      arith.select %[[IN]], %[[V]], %[[ZERO]] : f32
func.func @constant_operand(%c: tensor<4xi1>, %x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %r = linalg.generic {indexing_maps = [#all, #all, #none, #all], iterator_types = ["parallel"]}
      ins(%c, %x, %zero : tensor<4xi1>, tensor<4xf32>, tensor<f32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: i1, %v: f32, %z: f32, %out: f32):
    %0 = arith.select %in, %v, %z : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Without its operand the reduction would not know how often it runs.
// CHECK-LABEL: func.func @extent_of_a_loop(
// CHECK:         %[[ONES:.+]] = arith.constant dense<1.000000e+00> : tensor<4x8xf32>
// CHECK:         linalg.generic
// CHECK-SAME:        ins(%[[ONES]] : tensor<4x8xf32>)
func.func @extent_of_a_loop(%init: tensor<4xf32>) -> tensor<4xf32> {
  %ones = arith.constant dense<1.0> : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%ones : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @rounded_constant(
// CHECK:         %[[EPS:.+]] = arith.constant 9.99999974E-6 : f32
// CHECK-NOT:     arith.truncf
// CHECK:         return %[[EPS]]
func.func @rounded_constant() -> f32 {
  %eps = arith.constant 1.0e-5 : f64
  %0 = arith.truncf %eps : f64 to f32
  return %0 : f32
}

// -----

// CHECK-LABEL: func.func @scaled_error_function(
// CHECK-SAME:      %[[X:.+]]: f32) -> (f32, f32)
// CHECK-DAG:     %[[F:.+]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[TWO:.+]] = arith.constant 2.000000e+00 : f32
// CHECK:         %[[Q:.+]] = arith.divf %[[X]], %[[TWO]] : f32
// CHECK:         %[[P:.+]] = arith.mulf %[[X]], %[[F]] : f32
// CHECK:         %[[E:.+]] = math.erf %[[P]] : f32
// CHECK:         return %[[E]], %[[Q]]
func.func @scaled_error_function(%x: f32) -> (f32, f32) {
  %two = arith.constant 2.0 : f32
  %0 = arith.divf %x, %two : f32
  %1 = math.erf %0 : f32
  return %1, %0 : f32, f32
}

// -----

// The reciprocals of these are no normal numbers: a product would overflow, or lose
// bits, where the quotient does not.
// CHECK-LABEL: func.func @no_reciprocal(
// CHECK-COUNT-4: arith.divf
// CHECK-NOT:     arith.mulf
func.func @no_reciprocal(%x: f32) -> (f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %small = arith.constant 1.0e-39 : f32
  %large = arith.constant 3.0e38 : f32
  %infinite = arith.constant 0x7F800000 : f32
  %0 = arith.divf %x, %zero : f32
  %1 = math.erf %0 : f32
  %2 = arith.divf %x, %small : f32
  %3 = math.erf %2 : f32
  %4 = arith.divf %x, %large : f32
  %5 = math.erf %4 : f32
  %6 = arith.divf %x, %infinite : f32
  %7 = math.erf %6 : f32
  return %1, %3, %5, %7 : f32, f32, f32, f32
}

// -----

// CHECK-LABEL: func.func @constant_tensors(
// CHECK:         arith.divf
func.func @constant_tensors(%x: tensor<2xf32>) -> tensor<2xf32> {
  %two = arith.constant dense<2.0> : tensor<2xf32>
  %0 = arith.divf %x, %two : tensor<2xf32>
  %1 = math.erf %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @rounded_down(
// CHECK:         arith.truncf
func.func @rounded_down() -> f32 {
  %tenth = arith.constant 0.1 : f64
  %0 = arith.truncf %tenth downward : f64 to f32
  return %0 : f32
}
