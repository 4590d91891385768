// The IRDL export lets the mlir-opt of a release read and print tile graphs. IRDL has no
// traits, so that tool takes no op of ours for a terminator: its verifier is off for
// whole graphs, and what it prints, then in generic form, is verified here.
//
// REQUIRES: mlir-opt
// RUN: magweld-opt --emit-irdl -o %t.irdl.mlir
// RUN: %mlir-opt --irdl-file=%t.irdl.mlir --verify-each=0 \
// RUN:   --mlir-very-unsafe-disable-verifier-on-parsing %S/ops.mlir \
// RUN:   | magweld-opt - | filecheck %S/ops.mlir
//
// What stands alone it verifies.
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
