// RUN: magweld-opt --plan-memory %s | filecheck %s

func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {tile_graph.kernel}
func.func private @library(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {magweld.library = {op = "matmul"}}
func.func private @brings(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {magweld.adopts, magweld.library = {op = "convolution"}}
func.func private @external(tensor<64xf32>) -> tensor<64xf32>
    attributes {magweld.external = "sort"}

// The third destination takes the bytes of the first, which nobody reads any more; the
// last one leaves the function.
//
// CHECK-LABEL: func.func @reuse(
// CHECK-SAME:      attributes {magweld.arena_bytes = 512 : i64, magweld.transient_bytes = 0 : i64}
// CHECK:         tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.offset = 256 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.place = "output"}
func.func @reuse(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @kernel(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = tensor.empty() : tensor<64xf32>
  %3 = call @library(%1, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = tensor.empty() : tensor<64xf32>
  %5 = call @kernel(%3, %4) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %6 = tensor.empty() : tensor<64xf32>
  %7 = call @kernel(%5, %6) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %7 : tensor<64xf32>
}

// A reshape keeps what it reads alive, and an output read through one is an output.
//
// CHECK-LABEL: func.func @views(
// CHECK-SAME:      attributes {magweld.arena_bytes = 512 : i64, magweld.transient_bytes = 0 : i64}
// CHECK:         tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.offset = 256 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.place = "output"}
func.func @views(%x: tensor<64xf32>) -> tensor<8x8xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @kernel(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %square = tensor.expand_shape %1 [[0, 1]] output_shape [8, 8]
      : tensor<64xf32> into tensor<8x8xf32>
  %2 = tensor.empty() : tensor<64xf32>
  %3 = call @kernel(%x, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %line = tensor.collapse_shape %square [[0, 1]]
      : tensor<8x8xf32> into tensor<64xf32>
  %4 = tensor.empty() : tensor<64xf32>
  %5 = call @kernel(%line, %4) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %result = tensor.expand_shape %5 [[0, 1]] output_shape [8, 8]
      : tensor<64xf32> into tensor<8x8xf32>
  return %result : tensor<8x8xf32>
}

// What brings its own tensor needs no bytes of the arena, nor does an external; a
// convolution copies its operands and its result meanwhile.
//
// CHECK-LABEL: func.func @adopted(
// CHECK-SAME:      attributes {magweld.arena_bytes = 0 : i64, magweld.transient_bytes = 768 : i64}
// CHECK:         tensor.empty() {magweld.place = "adopted"}
// CHECK:         call @external
// CHECK:         tensor.empty() {magweld.place = "output"}
func.func @adopted(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @brings(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = call @external(%1) : (tensor<64xf32>) -> tensor<64xf32>
  %3 = tensor.empty() : tensor<64xf32>
  %4 = call @kernel(%2, %3) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %4 : tensor<64xf32>
}

// Buffers start on cache lines: four bytes take 64.
//
// CHECK-LABEL: func.func @aligned(
// CHECK-SAME:      attributes {magweld.arena_bytes = 128 : i64, magweld.transient_bytes = 0 : i64}
// CHECK:         tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// CHECK:         tensor.empty() {magweld.offset = 64 : i64, magweld.place = "arena"}
func.func private @small(tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    attributes {tile_graph.kernel}
func.func @aligned(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = tensor.empty() : tensor<1xf32>
  %1 = call @small(%x, %0) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %2 = tensor.empty() : tensor<1xf32>
  %3 = call @small(%1, %2) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %4 = tensor.empty() : tensor<1xf32>
  %5 = call @small(%3, %4) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %5 : tensor<1xf32>
}

// Tiles share bytes of the arena while they run: a copy of the 16 elements that each
// reads, beside the arena of its function. The result of a tile is brought.
//
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME:      attributes {magweld.arena_bytes = 384 : i64, magweld.transient_bytes = 64 : i64}
// CHECK:         tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// CHECK:         call @tiled({{.+}}) {magweld.scratch = 256 : i64}
// CHECK:       func.func private @tile(
// CHECK-SAME:      attributes {magweld.arena_bytes = 64 : i64, magweld.transient_bytes = 0 : i64}
func.func private @tiled(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {magweld.tile_runs = [
      {function = @tile, operands = array<i64: 0>, starts = [array<i64: 0>],
       position = array<i64: 0>},
      {function = @tile, operands = array<i64: 0>, starts = [array<i64: 16>],
       position = array<i64: 16>},
      {function = @tile, operands = array<i64: 0>, starts = [array<i64: 32>],
       position = array<i64: 32>},
      {function = @tile, operands = array<i64: 0>, starts = [array<i64: 48>],
       position = array<i64: 48>}]}
func.func private @part(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    attributes {tile_graph.kernel}
func.func @tiles(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @tiled(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = tensor.empty() : tensor<64xf32>
  %3 = call @kernel(%1, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}
func.func private @tile(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = tensor.empty() : tensor<16xf32>
  %1 = call @part(%x, %0) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %2 = tensor.empty() : tensor<16xf32>
  %3 = call @part(%1, %2) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}
