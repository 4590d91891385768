// The IRDL export lets torch-mlir-opt read, verify and print tile graphs. That tool lacks
// the gpu dialect: it takes gpu.yield, in generic form, for an operation it knows
// nothing of, which may end a block.
//
// REQUIRES: torch-mlir-opt
// RUN: magweld-opt --emit-irdl -o %t.irdl.mlir
// RUN: magweld-opt --mlir-print-op-generic %S/ops.mlir \
// RUN:   | %torch-mlir-opt --irdl-file=%t.irdl.mlir --allow-unregistered-dialect \
// RUN:   | magweld-opt - | filecheck %S/ops.mlir
//
// What IRDL can state it verifies.
// RUN: %torch-mlir-opt --irdl-file=%t.irdl.mlir %s --split-input-file --verify-diagnostics

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
