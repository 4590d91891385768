// One case for each rule of the verifiers of an execution plan.
//
// RUN: magweld-opt %s --split-input-file --verify-diagnostics

// a plan: in a function

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.for_tiles' op expects parent op to be one of 'func.func'}}
  %1 = "tile_graph.for_tiles"() ({
  ^bb0(%j: index):
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: a block for each shape of tiles

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected an extent, a step and an argument of type index for each loop, got 1, 1 and 0}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  ^bb1:
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: a block that ends

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected its block to end in 'gpu.yield'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    llvm.unreachable
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: only what plans hold

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected its body to hold the ops of a plan, got 'tensor.empty'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    %t = tensor.empty() : tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: an argument for each loop

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected an extent, a step and an argument of type index for each loop, got 2, 1 and 1}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8, 8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: a block for the last tile, which is smaller

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected a block for each of 2 shapes of tiles, got 1}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [3],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: one block for tiles that overlap, whose extents no call tells

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected no loop in 'runtime' where tiles are 'overlapping'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      runtime = [0], overlapping, operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: every result stored once

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected each result to be stored once, got [0, 0]}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: a level of the device

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected its level to be one of 'dram', 'shared', 'register' of device 'toy', got 'l7'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "l7", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: a footprint that fits

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected its footprint to fit into level 'shared' of 1024 bytes, got 2048 bytes}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 2048} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: places in its level

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected places in level 'shared', got #tile_graph.place<"dram", 0 : i64, 16 : i64, 64 : i64>}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"dram", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: places within its footprint

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected places within 8 bytes, got #tile_graph.place<"shared", 0 : i64, 16 : i64, 64 : i64>}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 8} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: tiles apart that live at one time

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected tiles of one time apart, got #tile_graph.place<"shared", 0 : i64, 16 : i64, 64 : i64> and #tile_graph.place<"shared", 0 : i64, 16 : i64, 64 : i64>}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %z = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: what has a place is released

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected the tile at #tile_graph.place<"shared", 0 : i64, 16 : i64, 64 : i64> to be released where it is made}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: released once

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected a tile to be released once, in the block that makes it}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: no tile used when it is released

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected no tile to be used behind its release, got 'tile_graph.compute'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: who reads a shared tile waits for who writes it

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected a 'tile_graph.barrier' before 'tile_graph.compute'}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// an allocation: in a plan

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f() attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.allocate' op expects to stand in 'tile_graph.for_tiles'}}
  %0 = "tile_graph.allocate"() : () -> tensor<4xf32>
  return
}

// -----

// a place: a place

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    // expected-error @below {{'tile_graph.allocate' op expected attribute 'place' to be a #tile_graph.place, got 7 : i64}}
    %y = "tile_graph.allocate"() {place = 7} : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a place: aligned

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    // expected-error @below {{'tile_graph.allocate' op expected an offset that is a multiple of its alignment, got #tile_graph.place<"shared", 8 : i64, 16 : i64, 64 : i64>}}
    %y = "tile_graph.allocate"() {place = #tile_graph.place<"shared", 8, 16, 64>} : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a place: as many bytes as the tile

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    // expected-error @below {{'tile_graph.allocate' op expected a place of 16 bytes, got #tile_graph.place<"shared", 0 : i64, 8 : i64, 64 : i64>}}
    %y = "tile_graph.allocate"() {place = #tile_graph.place<"shared", 0, 8, 64>} : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: no more bytes than the tile

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected a place of 16 bytes, got #tile_graph.place<"shared", 0 : i64, 32 : i64, 64 : i64>}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 32, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: offsets from its positions

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected offsets from 1 positions along 1 dimensions, got (d0, d1) -> (d0)}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i, j) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: sizes of a part

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected sizes of a part of tensor<8xf32>, got [9]}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [9],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: a tile of its sizes

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected a tile of sizes [2], got tensor<4xf32>}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [2],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: elements of the tensor

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected elements of type f32, got tensor<4xf16>}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        moved = 16, transactions = 1} : (tensor<8xf32>, index) -> tensor<4xf16>
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: bytes that move

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    // expected-error @below {{'tile_graph.load' op expected attribute 'moved' to be at least 0, got -1}}
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = -1, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a load: from outside of the plan

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    // expected-error @below {{'tile_graph.load' op expected its tensor to come from outside of the plan}}
    %t = "tile_graph.load"(%x) {offsets = affine_map<() -> (0)>, sizes = [4],
        moved = 16, transactions = 1} : (tensor<4xf32>) -> tensor<4xf32>
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a computation: on tiles

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    // expected-error @below {{'tile_graph.compute' op expected what it reads to be tiles of its plan, got a tensor}}
    %e = "tile_graph.compute"() ({
      %s = tensor.extract_slice %a[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
      %r = linalg.exp ins(%s : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a store: of what was allocated

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    // expected-error @below {{'tile_graph.store' op expected its second operand to be a 'tile_graph.allocate' of tensor<4xf32>}}
    "tile_graph.store"(%e, %x, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a store: to a result

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    // expected-error @below {{'tile_graph.store' op expected the number of a result of its plan, got 1}}
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 1, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a release: of what has a place

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    // expected-error @below {{'tile_graph.release' op expected an allocated or loaded tile with a place}}
    "tile_graph.release"(%y) : (tensor<4xf32>) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a computation: blocks of some iterations

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    // expected-error @below {{'tile_graph.compute' op expected attribute 'reduction_block' to be at least 1, got 0}}
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp", reduction_block = 0 : i64} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a computation: blocks of what an operation reduces

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 1024, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"shared", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    "tile_graph.barrier"() : () -> ()
    // expected-error @below {{'tile_graph.compute' op expected a linalg operation to make what has blocks, got 'tile_graph.allocate'}}
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %y : tensor<4xf32>
    }) {op_name = "exp", reduction_block = 16 : i64} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "shared", extents = [8], steps = [4],
      operators = ["exp"], footprint = 64} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// an allocation: a known role

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 1024, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"l2", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    // expected-error @below {{'tile_graph.allocate' op expected attribute 'role' to be one of ['window', 'image', 'result', 'transformed', 'products', 'weights', 'turned', 'sum'], got "tile"}}
    %z = "tile_graph.allocate"() {role = "tile",
        place = #tile_graph.place<"l2", 64, 16, 64>} : () -> tensor<4xf32>
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.release"(%z) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "l2", extents = [8], steps = [4],
      operators = ["exp"], footprint = 256} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// an allocation: windows last

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 1024, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"l2", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    // expected-error @below {{'tile_graph.allocate' op expected a window with a place to have attribute 'lasting'}}
    %z = "tile_graph.allocate"() {role = "products", lasting,
        place = #tile_graph.place<"l2", 64, 16, 64>} : () -> tensor<4xf32>
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    "tile_graph.release"(%z) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "l2", extents = [8], steps = [4],
      operators = ["exp"], footprint = 256} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// a plan: what lasts lies alone, at all times

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 1024, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

func.func @f(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {tile_graph.device = #device} {
  // expected-error @below {{'tile_graph.for_tiles' op expected nothing else where a window lasts, got #tile_graph.place<"l2", 0 : i64, 16 : i64, 64 : i64>}}
  %0 = "tile_graph.for_tiles"() ({
  ^bb0(%i: index):
    %x = "tile_graph.load"(%a, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        place = #tile_graph.place<"l2", 0, 16, 64>, moved = 16, transactions = 1}
        : (tensor<8xf32>, index) -> tensor<4xf32>
    %y = "tile_graph.allocate"() : () -> tensor<4xf32>
    %e = "tile_graph.compute"() ({
      %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
          -> tensor<4xf32>
      gpu.yield %r : tensor<4xf32>
    }) {op_name = "exp"} : () -> tensor<4xf32>
    "tile_graph.release"(%x) : (tensor<4xf32>) -> ()
    %z = "tile_graph.allocate"() {role = "window", lasting,
        place = #tile_graph.place<"l2", 0, 16, 64>} : () -> tensor<4xf32>
    "tile_graph.release"(%z) : (tensor<4xf32>) -> ()
    "tile_graph.store"(%e, %y, %i) {offsets = affine_map<(i) -> (i)>, sizes = [4],
        result = 0, moved = 16, transactions = 1}
        : (tensor<4xf32>, tensor<4xf32>, index) -> ()
    gpu.yield
  }) {subgraph_name = "exp", level = "l2", extents = [8], steps = [4],
      operators = ["exp"], footprint = 256} : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
