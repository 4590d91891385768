// RUN: magweld-opt --expand-math --canonicalize %s | filecheck %s

// CHECK-LABEL: func.func @twice(
// CHECK:         call @exp_16xf32(
// CHECK:         call @exp_16xf32(
// CHECK-NOT:     math.exp
func.func @twice(%x: vector<16xf32>) -> vector<16xf32> attributes {tile_graph.kernel} {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  return %1 : vector<16xf32>
}

// CHECK-LABEL: func.func @powers(
// CHECK-SAME:      %[[X:.+]]: vector<4xf32>
// CHECK:         %[[SQUARE:.+]] = arith.mulf %[[X]], %[[X]]
// CHECK:         %[[CUBE:.+]] = arith.mulf %[[SQUARE]], %[[X]]
// CHECK:         %[[ROOT:.+]] = math.sqrt %[[CUBE]]
// CHECK:         math.powf %[[ROOT]]
func.func @powers(%x: vector<4xf32>) -> vector<4xf32> attributes {tile_graph.kernel} {
  %three = arith.constant dense<3.0> : vector<4xf32>
  %half = arith.constant dense<0.5> : vector<4xf32>
  %other = arith.constant dense<0.7> : vector<4xf32>
  %0 = math.powf %x, %three : vector<4xf32>
  %1 = math.powf %0, %half : vector<4xf32>
  %2 = math.powf %1, %other : vector<4xf32>
  return %2 : vector<4xf32>
}

// Double precision is left to the C library.
// CHECK-LABEL: func.func @double(
// CHECK:         math.tanh
func.func @double(%x: f64) -> f64 attributes {tile_graph.kernel} {
  %0 = math.tanh %x : f64
  return %0 : f64
}

// The expansion is made once for each number of lanes, without a call or a branch.
// CHECK-LABEL: func.func private @exp_16xf32(
// CHECK-SAME:      %[[X:.+]]: vector<16xf32>) -> vector<16xf32> attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["alwaysinline"]}
// CHECK-COUNT-8: math.fma
// CHECK-NOT:     math.exp
