// RUN: magweld-opt --connect-operators %s | filecheck %s
// RUN: magweld-opt --connect-operators='fusion=registers' %s \
// RUN:   | filecheck %s --check-prefix=REGISTERS
// RUN: magweld-opt --connect-operators='fusion=none' %s \
// RUN:   | filecheck %s --check-prefix=NONE
// RUN: magweld-opt --connect-operators='width=1' %s \
// RUN:   | filecheck %s --check-prefix=GREEDY
// RUN: magweld-opt --connect-operators='trials=0' %s \
// RUN:   | filecheck %s --check-prefix=GREEDY

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#tiny = #tile_graph.device<"tiny", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 2048, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#staged = #tile_graph.device<"staged", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 65536, 200.0, 64, 2, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#flat = #tile_graph.device<"flat", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 1, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#last = affine_map<(d0, d1) -> (d1)>
#cube = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#square = affine_map<(d0, d1, d2) -> (d0, d1)>

// Rows of a sum and of what reads it are computed together, in the cache.
//
// CHECK-LABEL: func.func @rows(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
func.func @rows(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
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
  }) {op_name = "sum"} : () -> tensor<64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64xf32>) -> tensor<64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x128xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %1 : tensor<64x128xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x128xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x128xf32>
    gpu.yield %r : tensor<64x128xf32>
  }) {op_name = "divide"} : () -> tensor<64x128xf32>
  return %2 : tensor<64x128xf32>
}

// A product is kept in the cache for its reader, which melts into the next one.
//
// CHECK-LABEL: func.func @epilogue(
// CHECK:         {op_name = "matmul"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
// CHECK:         {op_name = "bias"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "register"}
// CHECK:         {op_name = "exp"}
//
// REGISTERS-LABEL: func.func @epilogue(
// REGISTERS:         {op_name = "matmul"}
// REGISTERS:         {level = "dram", refused = "not-asked: fusion is 'registers'"}
// REGISTERS:         {op_name = "bias"}
// REGISTERS:         {level = "register"}
// REGISTERS:         {op_name = "exp"}
//
// NONE-LABEL: func.func @epilogue(
// NONE:         {op_name = "bias"}
// NONE:         {level = "dram", refused = "not-asked: fusion is 'none'"}
// NONE:         {op_name = "exp"}
func.func @epilogue(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %v: tensor<64xf32>)
    -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    %r = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "matmul"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.generic {indexing_maps = [#all, #last, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%1, %v : tensor<64x64xf32>, tensor<64xf32>)
        outs(%empty : tensor<64x64xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.addf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "bias"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%2) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%3 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @library(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "library: matmul is a library call"}
func.func @library(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    %r = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "matmul", implementation = "library"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// What is read elsewhere as well is written from the tiles.
//
// CHECK-LABEL: func.func @two_results(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
func.func @two_results(%a: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "inner"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "outer"} : () -> tensor<64x64xf32>
  return %0, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}

// A third result is one too many: one of two chains keeps its edge.
//
// CHECK-LABEL: func.func @three_results(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "other-readers: first and others: 3 results of a group, 2 allowed"}
func.func @three_results(%a: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "second"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%2) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%3 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "third"} : () -> tensor<64x64xf32>
  return %0, %2, %4 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// Whoever takes the small tensor first has no room for the large one: a third result is
// one too many. The small one is given back.
//
// CHECK-LABEL: func.func @gives_back(
// CHECK:         {op_name = "small"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "other-readers: small and others: 3 results of a group, 2 allowed"}
// CHECK:         {op_name = "large"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
//
// GREEDY-LABEL: func.func @gives_back(
// GREEDY:         {op_name = "small"}
// GREEDY:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
// GREEDY:         {op_name = "large"}
// GREEDY:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "other-readers: small and others: 3 results of a group, 2 allowed"}
func.func @gives_back(%v: tensor<64x16xf32>, %a: tensor<64x16x32xf32>)
    -> (tensor<64x16xf32>, tensor<64x16x32xf32>, tensor<64x16x32xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x16xf32>
    %r = linalg.exp ins(%v : tensor<64x16xf32>) outs(%empty : tensor<64x16xf32>)
        -> tensor<64x16xf32>
    gpu.yield %r : tensor<64x16xf32>
  }) {op_name = "small"} : () -> tensor<64x16xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"} : (tensor<64x16xf32>) -> tensor<64x16xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x16x32xf32>
    %r = linalg.generic {indexing_maps = [#cube, #square, #cube],
                         iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %1 : tensor<64x16x32xf32>, tensor<64x16xf32>)
        outs(%empty : tensor<64x16x32xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.mulf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<64x16x32xf32>
    gpu.yield %r : tensor<64x16x32xf32>
  }) {op_name = "large"} : () -> tensor<64x16x32xf32>
  %3 = "tile_graph.connect"(%2) {level = "dram"}
      : (tensor<64x16x32xf32>) -> tensor<64x16x32xf32>
  %4 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x16x32xf32>
    %r = linalg.exp ins(%3 : tensor<64x16x32xf32>) outs(%empty : tensor<64x16x32xf32>)
        -> tensor<64x16x32xf32>
    gpu.yield %r : tensor<64x16x32xf32>
  }) {op_name = "last"} : () -> tensor<64x16x32xf32>
  return %0, %2, %4 : tensor<64x16xf32>, tensor<64x16x32xf32>, tensor<64x16x32xf32>
}

// A library call stands between the first operator and the last.
//
// CHECK-LABEL: func.func @in_between(
// CHECK:         {level = "dram", refused = "library: {{.+}}"}
// CHECK:         {level = "dram", refused = "other-readers: what reads first elsewhere has to run before the group is done"}
// CHECK:         {level = "dram", refused = "library: {{.+}}"}
func.func @in_between(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "first"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    %r = linalg.matmul ins(%1, %1 : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "matmul", implementation = "library"} : () -> tensor<64x64xf32>
  %3 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "tile_graph.connect"(%2) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.add ins(%3, %4 : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "add"} : () -> tensor<64x64xf32>
  return %5 : tensor<64x64xf32>
}

// Explicit memory holds no tile for a second use.
//
// CHECK-LABEL: func.func @other_readers(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "other-readers: inner {{.+}}"}
func.func @other_readers(%a: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #staged} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "inner"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "outer"} : () -> tensor<64x64xf32>
  return %0, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}

// Even for one element the operands need more than a tile may have of the cache: sums of
// f16 cannot wait between blocks of the reduction.
//
// CHECK-LABEL: func.func @footprint(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "footprint: {{[0-9]+}} bytes needed in l2, 32768 there"}
func.func @footprint(%a: tensor<64x16384xf16>, %b: tensor<16384x64xf16>)
    -> tensor<64x64xf16>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f16
    %empty = tensor.empty() : tensor<64x64xf16>
    %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x64xf16>)
        -> tensor<64x64xf16>
    %r = linalg.matmul ins(%a, %b : tensor<64x16384xf16>, tensor<16384x64xf16>)
        outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
    gpu.yield %r : tensor<64x64xf16>
  }) {op_name = "matmul"} : () -> tensor<64x64xf16>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf16>) -> tensor<64x64xf16>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf16>
    %r = linalg.exp ins(%1 : tensor<64x64xf16>) outs(%empty : tensor<64x64xf16>)
        -> tensor<64x64xf16>
    gpu.yield %r : tensor<64x64xf16>
  }) {op_name = "exp"} : () -> tensor<64x64xf16>
  return %2 : tensor<64x64xf16>
}

// Every row of tiles would compute the operand of the product again, and it cannot be
// streamed: a sum over a row has to be known before what is divided by it.
//
// CHECK-LABEL: func.func @needs_whole(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "footprint: {{[0-9]+}} bytes needed in l2, 32768 there; other tiles: recompute, {{[0-9.]+}} times the arithmetic, 1.25 allowed; not streamed, needs-whole: divide needs sum whole"}
// CHECK:         {op_name = "matmul"}
func.func @needs_whole(%x: tensor<512x2048xf32>, %b: tensor<2048x512xf32>)
    -> tensor<512x512xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<512x2048xf32>
    %r = linalg.exp ins(%x : tensor<512x2048xf32>)
        outs(%empty : tensor<512x2048xf32>) -> tensor<512x2048xf32>
    gpu.yield %r : tensor<512x2048xf32>
  }) {op_name = "exp"} : () -> tensor<512x2048xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %2 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %3 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512xf32>)
        -> tensor<512xf32>
    %r = linalg.reduce ins(%1 : tensor<512x2048xf32>) outs(%init : tensor<512xf32>)
        dimensions = [1] (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    gpu.yield %r : tensor<512xf32>
  }) {op_name = "sum"} : () -> tensor<512xf32>
  %4 = "tile_graph.connect"(%3) {level = "dram"}
      : (tensor<512xf32>) -> tensor<512xf32>
  %5 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<512x2048xf32>
    %r = linalg.generic {indexing_maps = [#all, #row, #all],
                         iterator_types = ["parallel", "parallel"]}
        ins(%2, %4 : tensor<512x2048xf32>, tensor<512xf32>)
        outs(%empty : tensor<512x2048xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      linalg.yield %d : f32
    } -> tensor<512x2048xf32>
    gpu.yield %r : tensor<512x2048xf32>
  }) {op_name = "divide"} : () -> tensor<512x2048xf32>
  %6 = "tile_graph.connect"(%5) {level = "dram"}
      : (tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %7 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512x512xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>)
        -> tensor<512x512xf32>
    %r = linalg.matmul ins(%6, %b : tensor<512x2048xf32>, tensor<2048x512xf32>)
        outs(%init : tensor<512x512xf32>) -> tensor<512x512xf32>
    gpu.yield %r : tensor<512x512xf32>
  }) {op_name = "matmul"} : () -> tensor<512x512xf32>
  return %7 : tensor<512x512xf32>
}

// Where caches hold the tiles, the product takes its operand in blocks.
//
// CHECK-LABEL: func.func @streamed(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2", stream = 0 : i64} :
func.func @streamed(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>)
    -> tensor<512x512xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<512x512xf32>
    %r = linalg.exp ins(%b : tensor<512x512xf32>) outs(%empty : tensor<512x512xf32>)
        -> tensor<512x512xf32>
    gpu.yield %r : tensor<512x512xf32>
  }) {op_name = "exp"} : () -> tensor<512x512xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512x512xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>)
        -> tensor<512x512xf32>
    %r = linalg.matmul ins(%a, %1 : tensor<512x512xf32>, tensor<512x512xf32>)
        outs(%init : tensor<512x512xf32>) -> tensor<512x512xf32>
    gpu.yield %r : tensor<512x512xf32>
  }) {op_name = "matmul"} : () -> tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}

// A window that hangs over the edges of what another operator makes.
//
// CHECK-LABEL: func.func @halo(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
func.func @halo(%x: tensor<1x2x32x32xf32>, %w: tensor<3x2x3x3xf32>)
    -> tensor<1x3x32x32xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<1x2x32x32xf32>
    %r = linalg.exp ins(%x : tensor<1x2x32x32xf32>) outs(%empty : tensor<1x2x32x32xf32>)
        -> tensor<1x2x32x32xf32>
    gpu.yield %r : tensor<1x2x32x32xf32>
  }) {op_name = "exp"} : () -> tensor<1x2x32x32xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %padded = tensor.pad %1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x2x32x32xf32> to tensor<1x2x34x34xf32>
    %empty = tensor.empty() : tensor<1x3x32x32xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x32x32xf32>)
        -> tensor<1x3x32x32xf32>
    %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                   strides = dense<1> : vector<2xi64>}
        ins(%padded, %w : tensor<1x2x34x34xf32>, tensor<3x2x3x3xf32>)
        outs(%init : tensor<1x3x32x32xf32>) -> tensor<1x3x32x32xf32>
    gpu.yield %r : tensor<1x3x32x32xf32>
  }) {op_name = "conv"} : () -> tensor<1x3x32x32xf32>
  return %2 : tensor<1x3x32x32xf32>
}

// CHECK-LABEL: func.func @unknown_region(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "unknown-region: exp -> slice"}
func.func @unknown_region(%a: tensor<64x64xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %r = tensor.extract_slice %1[0, 0] [32, 64] [2, 1]
        : tensor<64x64xf32> to tensor<32x64xf32>
    gpu.yield %r : tensor<32x64xf32>
  }) {op_name = "slice"} : () -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}

// What tensors are joined from is made in tiles that hold all of them.
// CHECK-LABEL: func.func @concatenation(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "l2"}
func.func @concatenation(%a: tensor<64x64xf32>) -> tensor<128x64xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %r = tensor.concat dim(0) %1, %a : (tensor<64x64xf32>, tensor<64x64xf32>)
        -> tensor<128x64xf32>
    gpu.yield %r : tensor<128x64xf32>
  }) {op_name = "concat"} : () -> tensor<128x64xf32>
  return %2 : tensor<128x64xf32>
}

// CHECK-LABEL: func.func @no_operator(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "no-operator: it comes from tensor.collapse_shape"}
func.func @no_operator(%a: tensor<64x64xf32>) -> tensor<4096xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "inner"} : () -> tensor<64x64xf32>
  %flat = tensor.collapse_shape %0 [[0, 1]] : tensor<64x64xf32> into tensor<4096xf32>
  %1 = "tile_graph.connect"(%flat) {level = "dram"}
      : (tensor<4096xf32>) -> tensor<4096xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<4096xf32>
    %r = linalg.exp ins(%1 : tensor<4096xf32>) outs(%empty : tensor<4096xf32>)
        -> tensor<4096xf32>
    gpu.yield %r : tensor<4096xf32>
  }) {op_name = "outer"} : () -> tensor<4096xf32>
  return %2 : tensor<4096xf32>
}

// CHECK-LABEL: func.func @no_level(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "no-level: flat has no level for reuse tiles"}
func.func @no_level(%a: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile_graph.device = #flat} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "inner"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%1 : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "outer"} : () -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// A tile of the sum would need two tiles of what it reads, and all of it does not fit.
//
// CHECK-LABEL: func.func @conflicting_tiles(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "footprint: 524288 bytes needed in l2, 32768 there; {{.*}}other tiles: conflicting-tiles, two consumers need different tiles of exp"}
func.func @conflicting_tiles(%a: tensor<256x256xf32>) -> tensor<256x256xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<256x256xf32>
    %r = linalg.exp ins(%a : tensor<256x256xf32>) outs(%empty : tensor<256x256xf32>)
        -> tensor<256x256xf32>
    gpu.yield %r : tensor<256x256xf32>
  }) {op_name = "exp"} : () -> tensor<256x256xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<256x256xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                          affine_map<(i, j) -> (j, i)>,
                                          affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%1, %1 : tensor<256x256xf32>, tensor<256x256xf32>)
        outs(%empty : tensor<256x256xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<256x256xf32>
    gpu.yield %r : tensor<256x256xf32>
  }) {op_name = "symmetric"} : () -> tensor<256x256xf32>
  return %2 : tensor<256x256xf32>
}

// A tile of so small a cache has few rows, and each of them would read the weights again.
//
// CHECK-LABEL: func.func @more_traffic(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "more-traffic: {{[0-9]+}} bytes together, 268288 bytes apart"}
func.func @more_traffic(%x: tensor<64x4x128xf32>, %w: tensor<4x128xf32>)
    -> tensor<64x4x128xf32> attributes {tile_graph.device = #tiny} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<4x128xf32>
    %r = linalg.negf ins(%w : tensor<4x128xf32>) outs(%empty : tensor<4x128xf32>)
        -> tensor<4x128xf32>
    gpu.yield %r : tensor<4x128xf32>
  }) {op_name = "negf"} : () -> tensor<4x128xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"} : (tensor<4x128xf32>) -> tensor<4x128xf32>
  %2 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x4x128xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>,
                                          affine_map<(i, j, k) -> (j, k)>,
                                          affine_map<(i, j, k) -> (i, j, k)>],
                         iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %1 : tensor<64x4x128xf32>, tensor<4x128xf32>)
        outs(%empty : tensor<64x4x128xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %s = arith.mulf %p, %q : f32
      %e = math.exp %s : f32
      linalg.yield %e : f32
    } -> tensor<64x4x128xf32>
    gpu.yield %r : tensor<64x4x128xf32>
  }) {op_name = "scale"} : () -> tensor<64x4x128xf32>
  return %2 : tensor<64x4x128xf32>
}

// One number has one tile, which would compute all of the product on one of many units.

#many = #tile_graph.device<"many", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 65536, 200.0, 64, 64, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 64, "explicit", 0.0, 0>
], 64, 1, 1, 256, 10.0, [], []>

// CHECK-LABEL: func.func @slower(
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "dram", refused = "slower: {{[0-9.e-]+}} s together, {{[0-9.e-]+}} s apart"}
func.func @slower(%a: tensor<64x16xf32>, %b: tensor<16x64xf32>) -> tensor<f32>
    attributes {tile_graph.device = #many} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    %r = linalg.matmul ins(%a, %b : tensor<64x16xf32>, tensor<16x64xf32>)
        outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "matmul"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<f32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
    %r = linalg.reduce {arith.addf} ins(%1 : tensor<64x64xf32>)
        outs(%init : tensor<f32>) dimensions = [0, 1]
    gpu.yield %r : tensor<f32>
  }) {op_name = "sum"} : () -> tensor<f32>
  return %2 : tensor<f32>
}
