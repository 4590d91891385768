// One case for each rule of the verifier; the title says what is expected.
//
// RUN: magweld-opt %s --split-input-file --verify-diagnostics

// a device around it

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'tile_graph.connect' op expected the function around it to have attribute 'tile_graph.device'}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device that is one

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = "toy"} {
  // expected-error @below {{'tile_graph.connect' op expected attribute 'tile_graph.device' of the function around it to be a #tile_graph.device, got "toy"}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: at least one level

#device = #tile_graph.device<"toy", [], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected device 'toy' to have a memory level}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: levels that are levels

#device = #tile_graph.device<"toy", [7], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected level #0 of the device, got 7}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: levels in order

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 1, 0, 25.0, 64, 1, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected level 'dram' to have index 0, got 1}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: levels of different names

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"dram", 1, 0, 25.0, 64, 1, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected distinct level names, got 'dram' twice}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: kinds of levels

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "big", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected the kind of level 'dram' to be one of explicit, cache, got 'big'}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: numbers that a memory can have

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 0.0, 64, 1, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected bandwidth of level 'dram' to be positive and finite, got 0.0}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: numbers that a processor can have

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>
], 0, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected units of device 'toy' to be at least 1, got 0}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: its peaks

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [7], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected peak #0 of the device, got 7}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// a device: shapes of instructions

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], [
  #tile_graph.instruction<"mma", [16, 8], "f16", "f32", 800.0>
]>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected a possible device around it: expected shape of instruction 'mma' to be three positive sizes, got [16, 8]}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// operator: its name

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op attribute "op_name" is expected but not provided}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  })  : () -> tensor<8xf32>
  return
}

// -----

// operator: a name that is a string

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{expected base attribute 'builtin.string' but got 'builtin.integer'}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = 1} : () -> tensor<8xf32>
  return
}

// -----

// operator: a region

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op unexpected number of regions: expected 1 but got 0}}
  %0 = "tile_graph.operator"() {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: no operands

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{op expects exactly 0 operands, but got 1}}
  %0 = "tile_graph.operator"(%x) ({}) {op_name = "exp"}
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// operator: no more than two results

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{op expects at most 2 results, but got 3}}
  %0:3 = "tile_graph.operator"() ({}) {op_name = "exp"}
      : () -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// operator: directly in a function or subgraph

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  scf.execute_region {
    // expected-error @below {{'tile_graph.operator' op expects parent op to be one of 'func.func', 'tile_graph.subgraph'}}
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    scf.yield
  }
  return
}

// -----

// operator: one block

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected one block, got 0}}
  %0 = "tile_graph.operator"() ({
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: a block without arguments

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected a block without arguments, got 1}}
  %0 = "tile_graph.operator"() ({
    ^bb0(%y: tensor<8xf32>):
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: a yield

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected its block to end in 'gpu.yield', got 'llvm.unreachable'}}
  %0 = "tile_graph.operator"() ({
    llvm.unreachable
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: as many values as results

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected as many yielded values as results, got 2 yielded values and 1 results}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp, %exp : tensor<8xf32>, tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: values of the types of the results

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected yielded value #0 to have the type of result #0, tensor<4xf32>, got tensor<8xf32>}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<4xf32>
  return
}

// -----

// operator: only operations on tensors

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected its body to hold a linalg operation or a move of elements, and constants, fills, pads and views, got 'math.exp'}}
  %0 = "tile_graph.operator"() ({
    %exp = math.exp %x : tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: a root

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected one root operation, got 0}}
  %0 = "tile_graph.operator"() ({
    %exp = tensor.empty() : tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: one root

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected one root operation, got 2 (linalg.exp, linalg.log)}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    %log = linalg.log ins(%exp : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %log : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: one pad where a pad is the root

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected one root operation, got 2 (tensor.pad, tensor.pad)}}
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %left = tensor.pad %x low[1] high[0] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<8xf32> to tensor<9xf32>
    %both = tensor.pad %left low[0] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<9xf32> to tensor<10xf32>
    gpu.yield %both : tensor<10xf32>
  }) {op_name = "exp"} : () -> tensor<10xf32>
  return
}

// -----

// operator: edges are connects

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  // expected-error @below {{'tile_graph.operator' op expected what it reads of 'tile_graph.operator' to come through 'tile_graph.connect'}}
  %1 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%0 : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return
}

// -----

// operator: an implementation that exists

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected attribute 'implementation' to be one of 'generated', 'library', got "magic"}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp", implementation = "magic"} : () -> tensor<8xf32>
  return
}

// -----

// operator: a tile that is one

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected attribute 'tile' to be a #tile_graph.tile, got [4]}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp", tile = [4]} : () -> tensor<8xf32>
  return
}

// -----

// operator: a tile of its rank

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected its tile to have 1 sizes, one for each parallel dimension, got 2}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp", tile = #tile_graph.tile<[4, 4]>} : () -> tensor<8xf32>
  return
}

// -----

// operator: a tile of positive sizes

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.operator' op expected size #0 of its tile to be positive, got 0}}
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp", tile = #tile_graph.tile<[0]>} : () -> tensor<8xf32>
  return
}

// -----

// connect: its level

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op attribute "level" is expected but not provided}}
  %1 = "tile_graph.connect"(%x)  : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// connect: a level of the device

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected its level to be one of 'dram', 'l2', 'l1' of device 'toy', got 'l9'}}
  %1 = "tile_graph.connect"(%x) {level = "l9"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// connect: directly in a function or subgraph

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  scf.execute_region {
    // expected-error @below {{'tile_graph.connect' op expects parent op to be one of 'func.func', 'tile_graph.subgraph'}}
    %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield
  }
  return
}

// -----

// connect: one operand

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{op expects exactly 1 operands, but got 2}}
  %1 = "tile_graph.connect"(%x, %x) {level = "dram"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// connect: a tensor

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  %i = arith.constant 1 : i32
  // expected-error @below {{expected base type 'builtin.tensor' but got 'builtin.integer'}}
  %1 = "tile_graph.connect"(%i) {level = "dram"} : (i32) -> i32
  return
}

// -----

// connect: a result of the type of its operand

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected its result to have the type of its operand, tensor<8xf32>, got tensor<4xf32>}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// connect: a value that operators make

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @below {{'tile_graph.connect' op expected its operand to be an argument or a result of 'tile_graph.operator', 'tile_graph.subgraph', 'tile_graph.for_tiles', 'func.call', 'tensor.collapse_shape', 'tensor.expand_shape', got a result of 'tile_graph.connect'}}
  %2 = "tile_graph.connect"(%1) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// connect: one reader

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected one operation to read its result, got 2}}
  %1 = "tile_graph.connect"(%x) {level = "dram"} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%1 : tensor<8xf32>) outs(%empty : tensor<8xf32>)
        -> tensor<8xf32>
    gpu.yield %exp : tensor<8xf32>
  }) {op_name = "exp"} : () -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// connect: no level outside of its subgraph's

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    // expected-error @below {{'tile_graph.connect' op expected its level to be 'l1' of its subgraph or inside of it, got 'l2'}}
    %t = "tile_graph.connect"(%p) {level = "l2"} : (tensor<8xf32>) -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%t : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: its name

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op attribute "subgraph_name" is expected but not provided}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {level = "l1"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: its level

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op attribute "level" is expected but not provided}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a level of the device

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its level to be one of 'dram', 'l2', 'l1' of device 'toy', got 'l9'}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l9"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: directly in a function

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  scf.execute_region {
    // expected-error @below {{'tile_graph.subgraph' op expects parent op to be one of 'func.func'}}
    %0 = "tile_graph.subgraph"() ({
      %q = "tile_graph.operator"() ({
        %empty = tensor.empty() : tensor<8xf32>
        %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
            -> tensor<8xf32>
        gpu.yield %exp : tensor<8xf32>
      }) {op_name = "exp"} : () -> tensor<8xf32>
      gpu.yield %q : tensor<8xf32>
    }) {subgraph_name = "s", level = "l1"} : () -> tensor<8xf32>
    scf.yield
  }
  return
}

// -----

// subgraph: only operators, connects and views

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its body to hold only 'gpu.yield', 'tensor.collapse_shape', 'tensor.expand_shape', 'tile_graph.connect', 'tile_graph.operator', got 'math.exp'}}
  %0 = "tile_graph.subgraph"() ({
    %q = math.exp %x : tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: an operator

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its body to hold a 'tile_graph.operator'}}
  %0 = "tile_graph.subgraph"() ({
    gpu.yield %x : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: an implementation that exists

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'implementation' to be one of 'generated', 'library', got "magic"}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", implementation = "magic"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: bytes moved by level are a table

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'moved_after' to be a dictionary, got 4 : i64}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", moved_after = 4 : i64} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: bytes moved at levels of the device

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected entries of 'moved_before' to be among 'dram', 'l2', 'l1', got 'l9'}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", moved_before = {l9 = 4 : i64}} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: shares of the time are numbers

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected 'arithmetic' of 'predicted_shares' to be a number of at least 0, got 4 : i64}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", predicted_shares = {arithmetic = 4 : i64}} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a tile of the rank of its last operator

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its tile to have 1 sizes, one for each parallel dimension, got 2}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", tile = #tile_graph.tile<[4, 2]>} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a tile of positive sizes

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected size #0 of its tile to be positive, got "all"}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", tile = #tile_graph.tile<["all"]>} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a tile that divides

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected size #0 of its tile to divide the extent 8, got 3}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", tile = #tile_graph.tile<[3]>} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: what its last operator makes comes first

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected it to give the results of its last operator first}}
  %0:2 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    %q = "tile_graph.connect"(%p) {level = "l1"} : (tensor<8xf32>) -> tensor<8xf32>
    %r = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%q : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %p, %r : tensor<8xf32>, tensor<8xf32>
  }) {subgraph_name = "s", level = "l1"} : () -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// subgraph: results are of its operators, each once

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected each of its results to be another one of its operators}}
  %0:2 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %p, %x : tensor<8xf32>, tensor<8xf32>
  }) {subgraph_name = "s", level = "l1"} : () -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// subgraph: a tile of parallel dimensions only

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its tile to have 0 sizes, one for each parallel dimension, got 1}}
  %0:2 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<f32>
      %sum = linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
          iterator_types = ["reduction"]}
          ins(%x : tensor<8xf32>) outs(%empty : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        %add = arith.addf %in, %out : f32
        linalg.yield %add : f32
      } -> tensor<f32>
      gpu.yield %sum : tensor<f32>
    }) {op_name = "sum"} : () -> tensor<f32>
    gpu.yield %q, %p : tensor<f32>, tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", tile = #tile_graph.tile<[8]>} : () -> (tensor<f32>, tensor<8xf32>)
  return
}

// -----

// subgraph: numbers that are integers

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'footprint' to be an integer, got "small"}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", footprint = "small"} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: traffic that is not negative

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'traffic_after' to be at least 0, got -1}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", traffic_after = -1} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a positive reduction step

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'reduction_step' to be at least 1, got 0}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", reduction_step = 0} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: no more traffic than before

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected traffic_after to be at most traffic_before, 64 bytes, got 96 bytes}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", traffic_before = 64, traffic_after = 96} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a footprint that fits

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected its footprint to fit into level 'l1' of 1024 bytes, got 2048 bytes}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", footprint = 2048} : () -> tensor<8xf32>
  return
}

// -----

// attributes: as many parameters as declared

// expected-error @below {{expected 1 type arguments, but had 2}}
func.func private @f() attributes {tile = #tile_graph.tile<[4], [4]>}

// -----

// attributes: parameters of the declared classes

// expected-error @below {{expected base attribute 'builtin.array' but got 'builtin.integer'}}
func.func private @f() attributes {tile = #tile_graph.tile<4>}

// -----

// connect: `stream` is a dimension

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "p"} : () -> tensor<8xf32>
    // expected-error @below {{'tile_graph.connect' op expected attribute 'stream' to be a dimension of tensor<8xf32>, got 4 : i64}}
    %c = "tile_graph.connect"(%p) {level = "l1", stream = 4}
        : (tensor<8xf32>) -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%c : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "q"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", stream_step = 2} : () -> tensor<8xf32>
  return
}

// -----

// connect: whole tensors are not streamed

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.connect' op expected what is streamed to live below level 'dram', which holds whole tensors}}
  %1 = "tile_graph.connect"(%x) {level = "dram", stream = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// subgraph: a positive step of a stream

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'stream_step' to be at least 1, got 0}}
  %0 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "p"} : () -> tensor<8xf32>
    %c = "tile_graph.connect"(%p) {level = "l1", stream = 0 : i64}
        : (tensor<8xf32>) -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%c : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "q"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", stream_step = 0} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: something to stream

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected an edge with 'stream' in it, since it has a stream_step}}
  %0 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "p"} : () -> tensor<8xf32>
    %c = "tile_graph.connect"(%p) {level = "l1"}
        : (tensor<8xf32>) -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%c : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "q"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1", stream_step = 2} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: a step of what is streamed

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"l1", 2, 1024, 800.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'stream_step', since an edge in it has 'stream'}}
  %0 = "tile_graph.subgraph"() ({
    %p = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "p"} : () -> tensor<8xf32>
    %c = "tile_graph.connect"(%p) {level = "l1", stream = 0 : i64}
        : (tensor<8xf32>) -> tensor<8xf32>
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%c : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "q"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l1",
      tile = #tile_graph.tile<[4]>} : () -> tensor<8xf32>
  return
}

// -----

// shift: offsets of an element

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @below {{'tile_graph.shift' op expected attribute 'offsets' to be of an element of tensor<8x4xf32> behind the first one, got [8, 0]}}
  %0 = "tile_graph.shift"(%x) {offsets = [8, 0]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// shift: an offset for each dimension

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @below {{got [1]}}
  %0 = "tile_graph.shift"(%x) {offsets = [1]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// shift: another element than the first

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @below {{got [0, 0]}}
  %0 = "tile_graph.shift"(%x) {offsets = [0, 0]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// shift: the same type

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @below {{expected its result to have the type of its operand, }}
  %0 = "tile_graph.shift"(%x) {offsets = [1, 0]} : (tensor<8x4xf32>) -> tensor<7x4xf32>
  return
}

// -----

// shift: static extents

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @below {{expected a tensor of static extents, got }}
  %0 = "tile_graph.shift"(%x) {offsets = [1, 0]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

// subgraph: several steps or no word of them

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 65536, 200.0, 64, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected attribute 'copy_stages' to be at least 2, got 1}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "shared", copy_stages = 1} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: steps are held where the program places them

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected no attribute 'copy_stages' for tiles in 'l2', which is a cache}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l2", copy_stages = 3} : () -> tensor<8xf32>
  return
}

// -----

// subgraph: what is stored past the caches is a result, and tiles lie in one

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected numbers of results in 'nontemporal', in order, got [1]}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "l2", nontemporal = [1]} : () -> tensor<8xf32>
  return
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 65536, 200.0, 64, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%x: tensor<8xf32>)
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.subgraph' op expected no attribute 'nontemporal' for tiles in 'shared', which is no cache}}
  %0 = "tile_graph.subgraph"() ({
    %q = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<8xf32>
      %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
          -> tensor<8xf32>
      gpu.yield %exp : tensor<8xf32>
    }) {op_name = "exp"} : () -> tensor<8xf32>
    gpu.yield %q : tensor<8xf32>
  }) {subgraph_name = "s", level = "shared", nontemporal = [0]} : () -> tensor<8xf32>
  return
}
