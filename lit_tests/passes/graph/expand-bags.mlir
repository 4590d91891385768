// RUN: magweld-opt --expand-bags %s | filecheck %s

// The sums of the rows between bounds are a loop over these rows; what declared them is
// gone.

// CHECK-NOT: func private
// CHECK-LABEL: func.func @sums
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %[[BOUNDS:.*]][0] [4] [1]
// CHECK: %[[BEHIND:.*]] = tensor.extract_slice %[[BOUNDS]][1] [4] [1]
// CHECK: linalg.generic {{.*}} ins(%[[FIRST]], %[[BEHIND]]
// CHECK: ^bb0(%[[F:.*]]: i64, %[[B:.*]]: i64, %{{.*}}: f32):
// CHECK: %[[D:.*]] = linalg.index 1
// CHECK: %[[LOW:.*]] = arith.index_cast %[[F]]
// CHECK: %[[HIGH:.*]] = arith.index_cast %[[B]]
// CHECK: %[[SUM:.*]] = scf.for %[[J:.*]] = %[[LOW]] to %[[HIGH]] step %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[ID:.*]] = tensor.extract %{{.*}}[%[[J]]]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[ID]]
// CHECK: %[[X:.*]] = tensor.extract %{{.*}}[%[[ROW]], %[[D]]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[S]], %[[X]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: linalg.yield %[[SUM]]
func.func private @bags_0(tensor<9x64xf32>, tensor<20xi64>, tensor<5xi64>)
    -> tensor<4x64xf32> attributes {magweld.bags = {mode = "sum", padding = -1 : i64}}
func.func @sums(%table: tensor<9x64xf32>, %ids: tensor<20xi64>, %bounds: tensor<5xi64>)
    -> tensor<4x64xf32> {
  %0 = call @bags_0(%table, %ids, %bounds)
      : (tensor<9x64xf32>, tensor<20xi64>, tensor<5xi64>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

// A mean divides by what lies between the bounds of sizes, less the rows of padding,
// which are not added.

// CHECK-LABEL: func.func @means
// CHECK: scf.for {{.*}} -> (f64, index)
// CHECK: %[[KEPT:.*]] = arith.cmpi ne, %{{.*}}, %c3_i32
// CHECK: %[[TERM:.*]] = arith.select %[[KEPT]]
// CHECK: %[[TOTAL:.*]] = arith.addf %{{.*}}, %[[TERM]]
// CHECK: %[[MORE:.*]] = arith.addi
// CHECK: %[[COUNT:.*]] = arith.select %[[KEPT]], %{{.*}}, %[[MORE]]
// CHECK: scf.yield %[[TOTAL]], %[[COUNT]]
// CHECK: arith.subi
// CHECK: arith.subi
// CHECK: arith.maxsi
// CHECK: arith.divf
func.func private @bags_1(tensor<9x8xf64>, tensor<20xi32>, tensor<5xi32>, tensor<5xi32>)
    -> tensor<4x8xf64>
    attributes {magweld.bags = {mode = "mean", padding = 3 : i64, sizes}}
func.func @means(%table: tensor<9x8xf64>, %ids: tensor<20xi32>, %bounds: tensor<5xi32>,
    %sizes: tensor<5xi32>) -> tensor<4x8xf64> {
  %0 = call @bags_1(%table, %ids, %bounds, %sizes)
      : (tensor<9x8xf64>, tensor<20xi32>, tensor<5xi32>, tensor<5xi32>)
      -> tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}

// Weights are factors of the rows.

// CHECK-LABEL: func.func @weighted
// CHECK: scf.for
// CHECK: %[[W:.*]] = tensor.extract %arg3
// CHECK: arith.mulf %{{.*}}, %[[W]]
func.func private @bags_2(tensor<9x8xf32>, tensor<20xi64>, tensor<5xi64>, tensor<20xf32>)
    -> tensor<4x8xf32>
    attributes {magweld.bags = {mode = "sum", padding = -1 : i64, weights}}
func.func @weighted(%table: tensor<9x8xf32>, %ids: tensor<20xi64>,
    %bounds: tensor<5xi64>, %weights: tensor<20xf32>) -> tensor<4x8xf32> {
  %0 = call @bags_2(%table, %ids, %bounds, %weights)
      : (tensor<9x8xf32>, tensor<20xi64>, tensor<5xi64>, tensor<20xf32>)
      -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// The first row of a maximum is greater than none.

// CHECK-LABEL: func.func @maxima
// CHECK: scf.for {{.*}} iter_args(%[[BEST:.*]] = %{{.*}}, %[[FOUND:.*]] = %false) -> (f32, i1)
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[ROW:.*]], %[[BEST]]
// CHECK: %[[GREATER:.*]] = arith.select %[[ABOVE]], %[[ROW]], %[[BEST]]
// CHECK: arith.select %[[FOUND]], %[[GREATER]], %[[ROW]]
func.func private @bags_3(tensor<9x8xf32>, tensor<20xi64>, tensor<5xi64>)
    -> tensor<4x8xf32> attributes {magweld.bags = {mode = "max", padding = -1 : i64}}
func.func @maxima(%table: tensor<9x8xf32>, %ids: tensor<20xi64>, %bounds: tensor<5xi64>)
    -> tensor<4x8xf32> {
  %0 = call @bags_3(%table, %ids, %bounds)
      : (tensor<9x8xf32>, tensor<20xi64>, tensor<5xi64>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Halves are added in f32. Sums of bf16 with `ties_away` have half a unit added to their
// bits, and the rest cut off; a mean of f16 is that of the rounded sum.

// CHECK-LABEL: func.func @halves
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (f32)
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SUM]] : f32 to i32
// CHECK: %[[MORE:.*]] = arith.addi %[[BITS]], %c32768_i32
// CHECK: %[[KEPT:.*]] = arith.shrui %[[MORE]], %c16_i32
// CHECK: %[[LOW:.*]] = arith.trunci %[[KEPT]] : i32 to i16
// CHECK: %[[HALF:.*]] = arith.bitcast %[[LOW]] : i16 to bf16
// CHECK: linalg.yield %[[HALF]]
// CHECK: %[[TOTAL:.*]] = scf.for {{.*}} -> (f32)
// CHECK-NOT: arith.bitcast
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[TOTAL]] : f32 to f16
// CHECK: arith.sitofp %{{.*}} : i64 to f32
// CHECK: arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func private @bags_4(tensor<9x8xbf16>, tensor<20xi64>, tensor<5xi64>)
    -> tensor<4x8xbf16>
    attributes {magweld.bags = {mode = "sum", padding = -1 : i64, ties_away}}
func.func private @bags_5(tensor<9x8xf16>, tensor<20xi64>, tensor<5xi64>)
    -> tensor<4x8xf16> attributes {magweld.bags = {mode = "mean", padding = -1 : i64}}
func.func @halves(%table: tensor<9x8xbf16>, %other: tensor<9x8xf16>,
    %ids: tensor<20xi64>, %bounds: tensor<5xi64>)
    -> (tensor<4x8xbf16>, tensor<4x8xf16>) {
  %0 = call @bags_4(%table, %ids, %bounds)
      : (tensor<9x8xbf16>, tensor<20xi64>, tensor<5xi64>) -> tensor<4x8xbf16>
  %1 = call @bags_5(%other, %ids, %bounds)
      : (tensor<9x8xf16>, tensor<20xi64>, tensor<5xi64>) -> tensor<4x8xf16>
  return %0, %1 : tensor<4x8xbf16>, tensor<4x8xf16>
}

// Calls of other functions stay.

// CHECK: func.func private @other
// CHECK: call @other
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
    attributes {magweld.external = "other"}
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
