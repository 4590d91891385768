// The IRDL export lets the mlir-opt of a release read, verify and print tile graphs.
//
// REQUIRES: mlir-opt
// RUN: magweld-opt --emit-irdl -o %t.irdl.mlir
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir %S/ops.mlir | filecheck %S/ops.mlir
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir %S/ops.mlir | magweld-opt - \
// RUN:   | filecheck %S/ops.mlir
//
// What IRDL can state it verifies.
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir %s --split-input-file --verify-diagnostics

func.func @connect(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tile_graph.connect"(%a) {level = "l2"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @connect(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{attribute "level" is expected but not provided}}
  %0 = "tile_graph.connect"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{expected base attribute 'builtin.array' but got 'builtin.integer'}}
func.func private @tile() attributes {tile = #tile_graph.tile<4>}
