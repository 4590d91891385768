// RUN: magweld-opt --select-winograd %s | filecheck %s

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 12.0, 0>,
  #tile_graph.level<"l3", 1, 16777216, 150.0, 64, 1, "cache", 0.0, 0>,
  #tile_graph.level<"l2", 2, 1048576, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 3, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 512, 200.0, [], []>
#gpu = #tile_graph.device<"toy-gpu", [
  #tile_graph.level<"global", 0, 0, 900.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 65536, 9000.0, 64, 80, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 65536, 18000.0, 32, 80, "explicit", 0.0, 0>
], 80, 1024, 32, 128, 15000.0, [], []>

// A border stays one of zeros.
// CHECK-LABEL: func.func @chosen(
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         tensor.pad
// CHECK:           tensor.yield %[[ZERO]] : f32
// CHECK:         linalg.fill ins(%[[ZERO]] : f32)
// CHECK:         linalg.conv_2d_nchw_fchw {{{.*}}magweld.winograd = 2 : i64
func.func @chosen(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x64x56x56xf32> to tensor<1x64x58x58xf32>
    %empty = tensor.empty() : tensor<1x64x56x56xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %w : tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%init : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    gpu.yield %y : tensor<1x64x56x56xf32>
  }) {op_name = "chosen"} : () -> tensor<1x64x56x56xf32>
  return %0 : tensor<1x64x56x56xf32>
}

// CHECK-LABEL: func.func @without_border(
// CHECK:         magweld.winograd = 2 : i64
func.func @without_border(%x: tensor<1x128x16x16xf32>, %w: tensor<128x128x3x3xf32>) -> tensor<1x128x14x14xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x128x14x14xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x128x16x16xf32>, tensor<128x128x3x3xf32>) outs(%init : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
    gpu.yield %y : tensor<1x128x14x14xf32>
  }) {op_name = "without_border"} : () -> tensor<1x128x14x14xf32>
  return %0 : tensor<1x128x14x14xf32>
}

// Windows that do not overlap as those of a tile do.
// CHECK-LABEL: func.func @stride(
// CHECK-NOT:     magweld.winograd
func.func @stride(%x: tensor<1x64x57x57xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x64x28x28xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x64x57x57xf32>, tensor<64x64x3x3xf32>) outs(%init : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    gpu.yield %y : tensor<1x64x28x28xf32>
  }) {op_name = "stride"} : () -> tensor<1x64x28x28xf32>
  return %0 : tensor<1x64x28x28xf32>
}

// Rows of weights that make no whole blocks.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     magweld.winograd
func.func @rows(%x: tensor<1x64x58x58xf32>, %w: tensor<40x64x3x3xf32>) -> tensor<1x40x56x56xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x40x56x56xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x40x56x56xf32>) -> tensor<1x40x56x56xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x64x58x58xf32>, tensor<40x64x3x3xf32>) outs(%init : tensor<1x40x56x56xf32>) -> tensor<1x40x56x56xf32>
    gpu.yield %y : tensor<1x40x56x56xf32>
  }) {op_name = "rows"} : () -> tensor<1x40x56x56xf32>
  return %0 : tensor<1x40x56x56xf32>
}

// Transforms of an image of three channels cost more than they save.
// CHECK-LABEL: func.func @few_channels(
// CHECK-NOT:     magweld.winograd
func.func @few_channels(%x: tensor<1x3x58x58xf32>, %w: tensor<32x3x3x3xf32>) -> tensor<1x32x56x56xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x32x56x56xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x3x58x58xf32>, tensor<32x3x3x3xf32>) outs(%init : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
    gpu.yield %y : tensor<1x32x56x56xf32>
  }) {op_name = "few_channels"} : () -> tensor<1x32x56x56xf32>
  return %0 : tensor<1x32x56x56xf32>
}

// The same weights pay for many images.
// CHECK-LABEL: func.func @many_images(
// CHECK:         magweld.winograd = 2 : i64
func.func @many_images(%x: tensor<16x512x10x10xf32>, %w: tensor<512x512x3x3xf32>) -> tensor<16x512x8x8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<16x512x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x512x8x8xf32>) -> tensor<16x512x8x8xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<16x512x10x10xf32>, tensor<512x512x3x3xf32>) outs(%init : tensor<16x512x8x8xf32>) -> tensor<16x512x8x8xf32>
    gpu.yield %y : tensor<16x512x8x8xf32>
  }) {op_name = "many_images"} : () -> tensor<16x512x8x8xf32>
  return %0 : tensor<16x512x8x8xf32>
}

// Their tiles transform the weights in a cache: not even one small image is too few,
// CHECK-LABEL: func.func @seven(
// CHECK:         magweld.winograd = 2 : i64
func.func @seven(%x: tensor<1x512x9x9xf32>, %w: tensor<512x512x3x3xf32>) -> tensor<1x512x7x7xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x512x7x7xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x512x9x9xf32>, tensor<512x512x3x3xf32>) outs(%init : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
    gpu.yield %y : tensor<1x512x7x7xf32>
  }) {op_name = "seven"} : () -> tensor<1x512x7x7xf32>
  return %0 : tensor<1x512x7x7xf32>
}

// nor an image whose few tiles leave most of a vector empty,
// CHECK-LABEL: func.func @small_image(
// CHECK-NOT:     magweld.winograd
func.func @small_image(%x: tensor<1x512x6x6xf32>, %w: tensor<512x512x3x3xf32>) -> tensor<1x512x4x4xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x512x4x4xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x512x4x4xf32>) -> tensor<1x512x4x4xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x512x6x6xf32>, tensor<512x512x3x3xf32>) outs(%init : tensor<1x512x4x4xf32>) -> tensor<1x512x4x4xf32>
    gpu.yield %y : tensor<1x512x4x4xf32>
  }) {op_name = "small_image"} : () -> tensor<1x512x4x4xf32>
  return %0 : tensor<1x512x4x4xf32>
}

// and kernels of other devices.
// CHECK-LABEL: func.func @on_gpu(
// CHECK-NOT:     magweld.winograd
func.func @on_gpu(%x: tensor<1x64x58x58xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
    attributes {tile_graph.device = #gpu} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x64x56x56xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%init : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    gpu.yield %y : tensor<1x64x56x56xf32>
  }) {op_name = "on_gpu"} : () -> tensor<1x64x56x56xf32>
  return %0 : tensor<1x64x56x56xf32>
}
