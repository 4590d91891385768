// RUN: magweld-opt --split-input-file --apply-plans %s | filecheck %s
// RUN: magweld-opt --split-input-file --apply-plans --select-implementation --connect-operators --extract-subgraphs --select-tiles %s | filecheck %s --check-prefix=STEPS

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Both halves of the graph are equal units: each gets the edge and the tile of the plan,
// and the plan is gone.
//
// CHECK-LABEL: func.func @layers(
// CHECK:         }) {implementation = "generated", op_name = "sum_0"}
// CHECK-NEXT:    "tile_graph.connect"(%{{.+}}) {level = "l2"}
// CHECK:         }) {implementation = "generated", op_name = "divide_0", tile = #tile_graph.tile<[4, 128]>}
// CHECK:         }) {implementation = "generated", op_name = "sum_1"}
// CHECK-NEXT:    "tile_graph.connect"(%{{.+}}) {level = "l2"}
// CHECK:         }) {implementation = "generated", op_name = "divide_1", tile = #tile_graph.tile<[4, 128]>}
// CHECK-NOT:   func.func
//
// The steps that follow keep the decisions and tell their numbers.
//
// STEPS-LABEL: func.func @layers(
// STEPS-COUNT-2: }) {footprint = {{[0-9]+}} : i64, implementation = "generated", level = "l2", {{.+}} tile = #tile_graph.tile<[4, 128]>,
// STEPS:         return
func.func @layers(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %s0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_0"} : () -> tensor<64xf32>
  %e0 = "tile_graph.connect"(%s0) {level = "dram"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e0 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_0"} : () -> tensor<64x128xf32>
  %flat = tensor.collapse_shape %y [[0, 1]]
      : tensor<64x128xf32> into tensor<8192xf32>
  %rows = tensor.expand_shape %flat [[0, 1]] output_shape [64, 128]
      : tensor<8192xf32> into tensor<64x128xf32>
  %c = "tile_graph.connect"(%rows) {level = "dram"}
      : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %c2 = "tile_graph.connect"(%rows) {level = "dram"}
      : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %s1 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%c : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_1"} : () -> tensor<64xf32>
  %e1 = "tile_graph.connect"(%s1) {level = "dram"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %z = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%c2, %e1 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_1"} : () -> tensor<64x128xf32>
  return %z : tensor<64x128xf32>
}

func.func private @plan(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device, tile_graph.plan = "tile 4x128"} {
  %s7 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_7", implementation = "generated"} : () -> tensor<64xf32>
  %e7 = "tile_graph.connect"(%s7) {level = "l2"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e7 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_7", implementation = "generated",
      tile = #tile_graph.tile<[4, 128]>} : () -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A plan of other sizes has no effect; the model plans.
//
// CHECK-LABEL: func.func @other(
// CHECK:         }) {op_name = "sum_0"}
// CHECK-NEXT:    "tile_graph.connect"(%{{.+}}) {level = "dram"}
// CHECK:         }) {op_name = "divide_0"}
// CHECK-NOT:   func.func
//
// STEPS-LABEL: func.func @other(
// STEPS:         }) {footprint = {{[0-9]+}} : i64, implementation = "generated", level = "l2",
func.func @other(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %s0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_0"} : () -> tensor<64xf32>
  %e0 = "tile_graph.connect"(%s0) {level = "dram"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e0 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_0"} : () -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

func.func private @plan(%x: tensor<32x128xf32>) -> tensor<32x128xf32>
    attributes {tile_graph.device = #device, tile_graph.plan = "tile 4x128"} {
  %s7 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<32xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32xf32>)
        -> tensor<32xf32>
    %r = linalg.reduce ins(%x : tensor<32x128xf32>) outs(%init : tensor<32xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<32xf32>
  }) {op_name = "sum_7", implementation = "generated"} : () -> tensor<32xf32>
  %e7 = "tile_graph.connect"(%s7) {level = "l2"}
      : (tensor<32xf32>) -> tensor<32xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<32x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e7 : tensor<32x128xf32>, tensor<32xf32>)
        outs(%empty : tensor<32x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<32x128xf32>
    gpu.yield %r : tensor<32x128xf32>
  }) {op_name = "divide_7", implementation = "generated",
      tile = #tile_graph.tile<[4, 128]>} : () -> tensor<32x128xf32>
  return %y : tensor<32x128xf32>
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A plan may keep apart what the model would connect.
//
// CHECK-LABEL: func.func @apart(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "slower: as measured"}
//
// STEPS-LABEL: func.func @apart(
// STEPS-COUNT-2: "tile_graph.subgraph"() ({
// STEPS:         return
func.func @apart(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %s0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_0"} : () -> tensor<64xf32>
  %e0 = "tile_graph.connect"(%s0) {level = "dram"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e0 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_0"} : () -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

func.func private @plan(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device, tile_graph.plan = "apart"} {
  %s7 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>)
        -> tensor<64xf32>
    %r = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<64xf32>
  }) {op_name = "sum_7", implementation = "generated"} : () -> tensor<64xf32>
  %e7 = "tile_graph.connect"(%s7) {level = "dram",
      refused = "slower: as measured"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e7 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide_7", implementation = "generated"} : () -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}
// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// An edge from a unit with a plan to another unit stays outside.
//
// CHECK-LABEL: func.func @beyond(
// CHECK:         }) {implementation = "generated", op_name = "divide_0", tile = #tile_graph.tile<[4, 128]>}
// CHECK-NEXT:    "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "plan: another plan begins here"}
// CHECK:         }) {op_name = "both"}
//
// STEPS-LABEL: func.func @beyond(
// STEPS:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "plan: another plan begins here"}
func.func @beyond(%x: tensor<256x128xf32>) -> tensor<512x128xf32>
    attributes {tile_graph.device = #device} {
  %s0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<256xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256xf32>)
        -> tensor<256xf32>
    %r = linalg.reduce ins(%x : tensor<256x128xf32>) outs(%init : tensor<256xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<256xf32>
  }) {op_name = "sum_0"} : () -> tensor<256xf32>
  %e0 = "tile_graph.connect"(%s0) {level = "dram"}
      : (tensor<256xf32>) -> tensor<256xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<256x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e0 : tensor<256x128xf32>, tensor<256xf32>)
        outs(%empty : tensor<256x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<256x128xf32>
    gpu.yield %r : tensor<256x128xf32>
  }) {op_name = "divide_0"} : () -> tensor<256x128xf32>
  %c = "tile_graph.connect"(%y) {level = "dram"}
      : (tensor<256x128xf32>) -> tensor<256x128xf32>
  %z = "tile_graph.operator"() ({
    %r = tensor.concat dim(0) %c, %x : (tensor<256x128xf32>, tensor<256x128xf32>)
        -> tensor<512x128xf32>
    gpu.yield %r : tensor<512x128xf32>
  }) {op_name = "both"} : () -> tensor<512x128xf32>
  return %z : tensor<512x128xf32>
}

func.func private @plan(%x: tensor<256x128xf32>) -> tensor<256x128xf32>
    attributes {tile_graph.device = #device, tile_graph.plan = "tile 4x128"} {
  %s7 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<256xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256xf32>)
        -> tensor<256xf32>
    %r = linalg.reduce ins(%x : tensor<256x128xf32>) outs(%init : tensor<256xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<256xf32>
  }) {op_name = "sum_7", implementation = "generated"} : () -> tensor<256xf32>
  %e7 = "tile_graph.connect"(%s7) {level = "l2"}
      : (tensor<256xf32>) -> tensor<256xf32>
  %y = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<256x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %e7 : tensor<256x128xf32>, tensor<256xf32>)
        outs(%empty : tensor<256x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<256x128xf32>
    gpu.yield %r : tensor<256x128xf32>
  }) {op_name = "divide_7", implementation = "generated",
      tile = #tile_graph.tile<[4, 128]>} : () -> tensor<256x128xf32>
  return %y : tensor<256x128xf32>
}

