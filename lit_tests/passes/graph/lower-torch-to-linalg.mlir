// RUN: magweld-opt --split-input-file --lower-torch-to-linalg %s | filecheck %s

// CHECK-LABEL: func.func @product(
// CHECK-SAME:      %[[A:.+]]: tensor<4x8xf32>, %[[B:.+]]: tensor<8x16xf32>) -> tensor<4x16xf32>
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[EMPTY:.+]] = tensor.empty() : tensor<4x16xf32>
// CHECK:         %[[INIT:.+]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]]
// CHECK:         %[[R:.+]] = linalg.matmul ins(%[[A]], %[[B]]
// CHECK-SAME:        outs(%[[INIT]]
// CHECK:         return %[[R]] : tensor<4x16xf32>
func.func @product(%a: !torch.vtensor<[4,8],f32>, %b: !torch.vtensor<[8,16],f32>) -> !torch.vtensor<[4,16],f32> {
  %0 = torch.aten.mm %a, %b : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,16],f32> -> !torch.vtensor<[4,16],f32>
  return %0 : !torch.vtensor<[4,16],f32>
}

// -----

// Calls of functions without a body keep their attributes and get builtin types.
// CHECK:       func.func private @external_0(tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>)
// CHECK-SAME:      attributes {magweld.external = "sort"}
// CHECK-LABEL: func.func @external(
// CHECK-SAME:      %[[X:.+]]: tensor<4x8xf32>)
// CHECK:         %[[R:.+]]:2 = call @external_0(%[[X]])
// CHECK:         linalg.generic
// CHECK-SAME:        ins(%[[R]]#0
// CHECK:         return %{{.+}}, %[[R]]#1
func.func private @external_0(!torch.vtensor<[4,8],f32>) -> (!torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],si64>)
    attributes {magweld.external = "sort"}
func.func @external(%x: !torch.vtensor<[4,8],f32>) -> (!torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],si64>) {
  %0:2 = call @external_0(%x) : (!torch.vtensor<[4,8],f32>) -> (!torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],si64>)
  %1 = torch.aten.exp %0#0 : !torch.vtensor<[4,8],f32> -> !torch.vtensor<[4,8],f32>
  return %1, %0#1 : !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],si64>
}

// -----

// A constant that only a call reads.
// CHECK-LABEL: func.func @constant(
// CHECK:         %[[C:.+]] = arith.constant dense<[1, 2]> : tensor<2xi64>
// CHECK:         call @external_0(%[[C]]) : (tensor<2xi64>) -> tensor<2xi64>
func.func private @external_0(!torch.vtensor<[2],si64>) -> !torch.vtensor<[2],si64> attributes {magweld.external = "f"}
func.func @constant() -> !torch.vtensor<[2],si64> {
  %0 = torch.vtensor.literal(dense<[1, 2]> : tensor<2xsi64>) : !torch.vtensor<[2],si64>
  %1 = call @external_0(%0) : (!torch.vtensor<[2],si64>) -> !torch.vtensor<[2],si64>
  return %1 : !torch.vtensor<[2],si64>
}

// -----

// What is no torch is left alone, unused declarations go.
// CHECK-NOT:   @unused
// CHECK-LABEL: func.func @plain(
// CHECK:         return
func.func private @unused(!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Control flow on the value of a tensor.
// CHECK-LABEL: func.func @control(
// CHECK-SAME:      %[[X:.+]]: tensor<4xf32>, %[[C:.+]]: tensor<i1>)
// CHECK:         %[[TRUE:.+]] = tensor.extract %[[C]][] : tensor<i1>
// CHECK:         %[[IF:.+]] = scf.if %[[TRUE]] -> (tensor<4xf32>) {
// CHECK:           linalg.generic
// CHECK:           scf.yield
// CHECK:         } else {
// CHECK:           scf.yield %[[X]] : tensor<4xf32>
// CHECK:         scf.while ({{.*}} = %[[IF]])
// CHECK:           scf.condition
// CHECK:           linalg.generic
func.func @control(%x: !torch.vtensor<[4],f32>, %c: !torch.vtensor<[],i1>) -> !torch.vtensor<[4],f32> {
  %true = torch.aten.Bool.Tensor %c : !torch.vtensor<[],i1> -> !torch.bool
  %0 = torch.prim.If %true -> (!torch.vtensor<[4],f32>) {
    %1 = torch.aten.exp %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
    torch.prim.If.yield %1 : !torch.vtensor<[4],f32>
  } else {
    torch.prim.If.yield %x : !torch.vtensor<[4],f32>
  }
  %trips = torch.constant.int 9223372036854775807
  %2 = torch.prim.Loop %trips, %true, init(%0) {
  ^bb0(%i: !torch.int, %h: !torch.vtensor<[4],f32>):
    %3 = torch.aten.exp %h : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
    torch.prim.Loop.condition %true, iter(%3 : !torch.vtensor<[4],f32>)
  } : (!torch.int, !torch.bool, !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %2 : !torch.vtensor<[4],f32>
}

// -----

// A loop whose number of iterations is known before.
// CHECK-LABEL: func.func @counted(
// CHECK:         scf.for
// CHECK:           linalg.generic
// CHECK:           scf.yield
func.func @counted(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %trips = torch.constant.int 5
  %true = torch.constant.bool true
  %0 = torch.prim.Loop %trips, %true, init(%x) {
  ^bb0(%i: !torch.int, %h: !torch.vtensor<[4],f32>):
    %1 = torch.aten.exp %h : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
    torch.prim.Loop.condition %true, iter(%1 : !torch.vtensor<[4],f32>)
  } : (!torch.int, !torch.bool, !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
