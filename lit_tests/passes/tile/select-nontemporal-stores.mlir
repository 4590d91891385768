// RUN: magweld-opt --split-input-file --select-nontemporal-stores %s | filecheck %s

// x and the result of 32 rows of 80 elements have 10240 bytes each: the last cache, of
// 16384 bytes, does not hold both.

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l3", 1, 16384, 100.0, 64, 1, "cache", 0.0, 0>,
  #tile_graph.level<"l2", 2, 4096, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 3, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// CHECK-LABEL: func.func @large(
// CHECK:         }) {{{.*}}moved_after = {dram = 20480 : i64{{.*}}nontemporal = [0]
func.func @large(%x: tensor<32x80xf32>) -> tensor<32x80xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.abs ins(%x : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "abs"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 20480 : i64, l2 = 20480 : i64, l3 = 20480 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  return %out : tensor<32x80xf32>
}

// All of it stays in the last cache; arithmetic takes longer than memory.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     nontemporal
// CHECK-LABEL: func.func @busy(
// CHECK-NOT:     nontemporal
func.func @small(%x: tensor<32x64xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x64xf32>
      %r = linalg.abs ins(%x : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
      gpu.yield %r : tensor<32x64xf32>
    }) {op_name = "abs"} : () -> tensor<32x64xf32>
    gpu.yield %0 : tensor<32x64xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 64]>,
      moved_after = {dram = 16384 : i64, l2 = 16384 : i64, l3 = 16384 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x64xf32>
  return %out : tensor<32x64xf32>
}

func.func @busy(%x: tensor<32x80xf32>) -> tensor<32x80xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.abs ins(%x : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "abs"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 20480 : i64, l2 = 20480 : i64, l3 = 20480 : i64},
      predicted_shares = {arithmetic = 9.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  return %out : tensor<32x80xf32>
}

// Rows of 79 elements, and tiles of 24 columns, are no whole lines; tiles of 16 are.
// CHECK-LABEL: func.func @odd_rows(
// CHECK-NOT:     nontemporal
// CHECK-LABEL: func.func @odd_tiles(
// CHECK-NOT:     nontemporal
// CHECK-LABEL: func.func @even_tiles(
// CHECK:         }) {{{.*}}nontemporal = [0]
func.func @odd_rows(%x: tensor<32x79xf32>) -> tensor<32x79xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x79xf32>
      %r = linalg.abs ins(%x : tensor<32x79xf32>) outs(%empty : tensor<32x79xf32>) -> tensor<32x79xf32>
      gpu.yield %r : tensor<32x79xf32>
    }) {op_name = "abs"} : () -> tensor<32x79xf32>
    gpu.yield %0 : tensor<32x79xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 79]>,
      moved_after = {dram = 20224 : i64, l2 = 20224 : i64, l3 = 20224 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x79xf32>
  return %out : tensor<32x79xf32>
}

func.func @odd_tiles(%x: tensor<32x96xf32>) -> tensor<32x96xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x96xf32>
      %r = linalg.abs ins(%x : tensor<32x96xf32>) outs(%empty : tensor<32x96xf32>) -> tensor<32x96xf32>
      gpu.yield %r : tensor<32x96xf32>
    }) {op_name = "abs"} : () -> tensor<32x96xf32>
    gpu.yield %0 : tensor<32x96xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[4, 24]>,
      moved_after = {dram = 24576 : i64, l2 = 24576 : i64, l3 = 24576 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x96xf32>
  return %out : tensor<32x96xf32>
}

func.func @even_tiles(%x: tensor<32x96xf32>) -> tensor<32x96xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x96xf32>
      %r = linalg.abs ins(%x : tensor<32x96xf32>) outs(%empty : tensor<32x96xf32>) -> tensor<32x96xf32>
      gpu.yield %r : tensor<32x96xf32>
    }) {op_name = "abs"} : () -> tensor<32x96xf32>
    gpu.yield %0 : tensor<32x96xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[4, 16]>,
      moved_after = {dram = 24576 : i64, l2 = 24576 : i64, l3 = 24576 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x96xf32>
  return %out : tensor<32x96xf32>
}

// Another kernel reads the first result, which the last cache could hold alone; the
// second result is larger than that.
// CHECK-LABEL: func.func @read_again(
// CHECK:         op_name = "abs"
// CHECK-NOT:     nontemporal
// CHECK:         subgraph_name = "abs"
// CHECK:         op_name = "floor"
// CHECK:         }) {{{.*}}nontemporal = [0]
// CHECK-LABEL: func.func @read_again_when_gone(
// CHECK:         op_name = "abs"
// CHECK:         }) {{{.*}}nontemporal = [0]
// CHECK-LABEL: func.func private @called(
// CHECK-NOT:     nontemporal
func.func @read_again(%x: tensor<32x80xf32>) -> tensor<32x80xf32>
    attributes {tile_graph.device = #device} {
  %a = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.abs ins(%x : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "abs"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 20480 : i64, l2 = 20480 : i64, l3 = 20480 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  %edge = "tile_graph.connect"(%a) {level = "dram"} : (tensor<32x80xf32>) -> tensor<32x80xf32>
  %b = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.floor ins(%edge : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "floor"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "floor", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 20480 : i64, l2 = 20480 : i64, l3 = 20480 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  return %b : tensor<32x80xf32>
}

func.func @read_again_when_gone(%x: tensor<64x80xf32>) -> tensor<64x80xf32>
    attributes {tile_graph.device = #device} {
  %a = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x80xf32>
      %r = linalg.abs ins(%x : tensor<64x80xf32>) outs(%empty : tensor<64x80xf32>) -> tensor<64x80xf32>
      gpu.yield %r : tensor<64x80xf32>
    }) {op_name = "abs"} : () -> tensor<64x80xf32>
    gpu.yield %0 : tensor<64x80xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 40960 : i64, l2 = 40960 : i64, l3 = 40960 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<64x80xf32>
  %edge = "tile_graph.connect"(%a) {level = "dram"} : (tensor<64x80xf32>) -> tensor<64x80xf32>
  %b = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<64x80xf32>
      %r = linalg.floor ins(%edge : tensor<64x80xf32>) outs(%empty : tensor<64x80xf32>) -> tensor<64x80xf32>
      gpu.yield %r : tensor<64x80xf32>
    }) {op_name = "floor"} : () -> tensor<64x80xf32>
    gpu.yield %0 : tensor<64x80xf32>
  }) {subgraph_name = "floor", level = "l2", tile = #tile_graph.tile<[2, 80]>}
      : () -> tensor<64x80xf32>
  return %b : tensor<64x80xf32>
}

func.func private @called(%x: tensor<32x80xf32>) -> tensor<32x80xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.abs ins(%x : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "abs"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "abs", level = "l2", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {dram = 20480 : i64, l2 = 20480 : i64, l3 = 20480 : i64},
      predicted_shares = {arithmetic = 1.0e-7 : f64, dram = 8.0e-7 : f64, l2 = 1.0e-7 : f64, l3 = 2.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  return %out : tensor<32x80xf32>
}

// -----

// Threads of this device share tiles in a memory that the program places them in.

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"global", 0, 0, 900.0, 32, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 16384, 2000.0, 32, 1, "cache", 0.0, 0>,
  #tile_graph.level<"shared", 2, 24576, 10000.0, 4, 2, "explicit", 0.0, 0>
], 2, 256, 32, 128, 10000.0, [], []>

// CHECK-LABEL: func.func @shared(
// CHECK-NOT:     nontemporal
func.func @shared(%x: tensor<32x80xf32>) -> tensor<32x80xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %empty = tensor.empty() : tensor<32x80xf32>
      %r = linalg.abs ins(%x : tensor<32x80xf32>) outs(%empty : tensor<32x80xf32>) -> tensor<32x80xf32>
      gpu.yield %r : tensor<32x80xf32>
    }) {op_name = "abs"} : () -> tensor<32x80xf32>
    gpu.yield %0 : tensor<32x80xf32>
  }) {subgraph_name = "abs", level = "shared", tile = #tile_graph.tile<[2, 80]>,
      moved_after = {global = 20480 : i64, l2 = 20480 : i64},
      predicted_shares = {arithmetic = 1.0e-9 : f64, global = 8.0e-7 : f64, l2 = 1.0e-7 : f64}}
      : () -> tensor<32x80xf32>
  return %out : tensor<32x80xf32>
}
