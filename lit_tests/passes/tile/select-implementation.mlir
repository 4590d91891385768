// RUN: magweld-opt --select-implementation %s | filecheck %s --check-prefixes=CHECK,AUTO
// RUN: magweld-opt --select-implementation="library=never" %s | filecheck %s --check-prefixes=CHECK,NEVER
// RUN: magweld-opt --select-implementation="library=always" %s | filecheck %s --check-prefixes=CHECK,ALWAYS

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 25.0, 64, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"l2", 1, 262144, 200.0, 64, 2, "cache", 0.0, 0>,
  #tile_graph.level<"register", 2, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 256, 100.0, [], []>

// The device does four operations while it moves a byte. The narrow product needs fewer;
// the batches fit into the caches; of the large matrices each core reads blocks of their
// reduction again and again, which fit. Tiles of a prime extent leave a smaller one at the
// end, and elements of two bytes are left to the library.
//
// CHECK-LABEL: func.func @products(
// AUTO:          {implementation = "generated", op_name = "narrow"}
// AUTO:          {implementation = "generated", op_name = "batches"}
// AUTO:          {implementation = "generated", op_name = "large"}
// AUTO:          {implementation = "generated", op_name = "prime"}
// AUTO:          {implementation = "library", op_name = "half"}
// NEVER:         {implementation = "generated", op_name = "narrow"}
// NEVER:         {implementation = "generated", op_name = "batches"}
// NEVER:         {implementation = "generated", op_name = "large"}
// NEVER:         {implementation = "generated", op_name = "prime"}
// NEVER:         {implementation = "generated", op_name = "half"}
// ALWAYS:        {implementation = "library", op_name = "narrow"}
// ALWAYS:        {implementation = "library", op_name = "batches"}
// ALWAYS:        {implementation = "library", op_name = "large"}
// ALWAYS:        {implementation = "library", op_name = "prime"}
// ALWAYS:        {implementation = "library", op_name = "half"}
func.func @products(%a: tensor<512x512xf32>, %b: tensor<512x4xf32>,
                    %c: tensor<6x64x64xf32>, %d: tensor<64x64xf16>,
                    %p: tensor<521x521xf32>)
    -> (tensor<512x4xf32>, tensor<6x64x64xf32>, tensor<512x512xf32>,
        tensor<521x521xf32>, tensor<64x64xf16>)
    attributes {tile_graph.device = #device} {
  %narrow = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512x4xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x4xf32>)
        -> tensor<512x4xf32>
    %r = linalg.matmul ins(%a, %b : tensor<512x512xf32>, tensor<512x4xf32>)
        outs(%init : tensor<512x4xf32>) -> tensor<512x4xf32>
    gpu.yield %r : tensor<512x4xf32>
  }) {op_name = "narrow"} : () -> tensor<512x4xf32>
  %batches = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<6x64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x64x64xf32>)
        -> tensor<6x64x64xf32>
    %r = linalg.batch_matmul ins(%c, %c : tensor<6x64x64xf32>, tensor<6x64x64xf32>)
        outs(%init : tensor<6x64x64xf32>) -> tensor<6x64x64xf32>
    gpu.yield %r : tensor<6x64x64xf32>
  }) {op_name = "batches"} : () -> tensor<6x64x64xf32>
  %large = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512x512xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>)
        -> tensor<512x512xf32>
    %r = linalg.matmul ins(%a, %a : tensor<512x512xf32>, tensor<512x512xf32>)
        outs(%init : tensor<512x512xf32>) -> tensor<512x512xf32>
    gpu.yield %r : tensor<512x512xf32>
  }) {op_name = "large"} : () -> tensor<512x512xf32>
  %prime = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<521x521xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<521x521xf32>)
        -> tensor<521x521xf32>
    %r = linalg.matmul ins(%p, %p : tensor<521x521xf32>, tensor<521x521xf32>)
        outs(%init : tensor<521x521xf32>) -> tensor<521x521xf32>
    gpu.yield %r : tensor<521x521xf32>
  }) {op_name = "prime"} : () -> tensor<521x521xf32>
  %half = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f16
    %empty = tensor.empty() : tensor<64x64xf16>
    %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x64xf16>)
        -> tensor<64x64xf16>
    %r = linalg.matmul ins(%d, %d : tensor<64x64xf16>, tensor<64x64xf16>)
        outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
    gpu.yield %r : tensor<64x64xf16>
  }) {op_name = "half"} : () -> tensor<64x64xf16>
  return %narrow, %batches, %large, %prime, %half
      : tensor<512x4xf32>, tensor<6x64x64xf32>, tensor<512x512xf32>,
        tensor<521x521xf32>, tensor<64x64xf16>
}

// A convolution of many channels counts as bound by arithmetic; one that pads with ones is none that
// a library computes.
//
// CHECK-LABEL: func.func @convolutions(
// AUTO:          {implementation = "library", op_name = "zeros"}
// AUTO:          {implementation = "generated", op_name = "ones"}
// NEVER:         {implementation = "generated", op_name = "zeros"}
// NEVER:         {implementation = "generated", op_name = "ones"}
// ALWAYS:        {implementation = "library", op_name = "zeros"}
// ALWAYS:        {implementation = "generated", op_name = "ones"}
func.func @convolutions(%x: tensor<1x32x8x8xf32>, %w: tensor<32x32x3x3xf32>)
    -> (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x32x8x8xf32> to tensor<1x32x10x10xf32>
    %empty = tensor.empty() : tensor<1x32x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x8x8xf32>)
        -> tensor<1x32x8x8xf32>
    %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                   strides = dense<1> : vector<2xi64>}
        ins(%padded, %w : tensor<1x32x10x10xf32>, tensor<32x32x3x3xf32>)
        outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
    gpu.yield %r : tensor<1x32x8x8xf32>
  }) {op_name = "zeros"} : () -> tensor<1x32x8x8xf32>
  %1 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %padded = tensor.pad %x low[0, 0, 0, 0] high[0, 0, 2, 2] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %one : f32
    } : tensor<1x32x8x8xf32> to tensor<1x32x10x10xf32>
    %empty = tensor.empty() : tensor<1x32x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x8x8xf32>)
        -> tensor<1x32x8x8xf32>
    %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                   strides = dense<1> : vector<2xi64>}
        ins(%padded, %w : tensor<1x32x10x10xf32>, tensor<32x32x3x3xf32>)
        outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
    gpu.yield %r : tensor<1x32x8x8xf32>
  }) {op_name = "ones"} : () -> tensor<1x32x8x8xf32>
  return %0, %1 : tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>
}

// Of few channels a library computes blocks that they do not fill.
//
// CHECK-LABEL: func.func @narrow(
// AUTO:          {implementation = "generated", op_name = "few"}
// ALWAYS:        {implementation = "library", op_name = "few"}
func.func @narrow(%x: tensor<1x64x10x10xf32>, %w: tensor<31x64x3x3xf32>)
    -> tensor<1x31x8x8xf32> attributes {tile_graph.device = #device} {
  %few = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x31x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x31x8x8xf32>)
        -> tensor<1x31x8x8xf32>
    %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                   strides = dense<1> : vector<2xi64>}
        ins(%x, %w : tensor<1x64x10x10xf32>, tensor<31x64x3x3xf32>)
        outs(%init : tensor<1x31x8x8xf32>) -> tensor<1x31x8x8xf32>
    gpu.yield %r : tensor<1x31x8x8xf32>
  }) {op_name = "few"} : () -> tensor<1x31x8x8xf32>
  return %few : tensor<1x31x8x8xf32>
}

// A window over each channel by itself reads more than it computes.
//
// CHECK-LABEL: func.func @depthwise(
// AUTO:          {implementation = "generated", op_name = "conv"}
// ALWAYS:        {implementation = "library", op_name = "conv"}
func.func @depthwise(%x: tensor<1x3x10x10xf32>, %w: tensor<3x3x3xf32>)
    -> tensor<1x3x8x8xf32>
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x3x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x8x8xf32>)
        -> tensor<1x3x8x8xf32>
    %r = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>,
                                            strides = dense<1> : vector<2xi64>}
        ins(%x, %w : tensor<1x3x10x10xf32>, tensor<3x3x3xf32>)
        outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
    gpu.yield %r : tensor<1x3x8x8xf32>
  }) {op_name = "conv"} : () -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// No library call: another accumulator than zero, and another operation.
//
// CHECK-LABEL: func.func @no_call(
// CHECK:         {implementation = "generated", op_name = "accumulates"}
// CHECK:         {implementation = "generated", op_name = "exp"}
func.func @no_call(%a: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %r = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>)
        outs(%a : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "accumulates"} : () -> tensor<64x64xf32>
  %1 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<64x64xf32>
    %r = linalg.exp ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>)
        -> tensor<64x64xf32>
    gpu.yield %r : tensor<64x64xf32>
  }) {op_name = "exp"} : () -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// A convolution without padding has a call whatever made its image; one of single points
// is fused rather.
//
// CHECK-LABEL: func.func @image_of_an_operator(
// AUTO:          {implementation = "generated", op_name = "pointwise"}
// ALWAYS:        {implementation = "library", op_name = "pointwise"}
func.func @image_of_an_operator(%x: tensor<1x2x8x8xf32>, %w: tensor<3x2x1x1xf32>)
    -> tensor<1x3x8x8xf32> attributes {tile_graph.device = #device} {
  %0 = "tile_graph.operator"() ({
    %empty = tensor.empty() : tensor<1x2x8x8xf32>
    %r = linalg.exp ins(%x : tensor<1x2x8x8xf32>) outs(%empty : tensor<1x2x8x8xf32>)
        -> tensor<1x2x8x8xf32>
    gpu.yield %r : tensor<1x2x8x8xf32>
  }) {op_name = "image"} : () -> tensor<1x2x8x8xf32>
  %1 = "tile_graph.connect"(%0) {level = "dram"}
      : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = "tile_graph.operator"() ({
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x3x8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x3x8x8xf32>)
        -> tensor<1x3x8x8xf32>
    %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                   strides = dense<1> : vector<2xi64>}
        ins(%1, %w : tensor<1x2x8x8xf32>, tensor<3x2x1x1xf32>)
        outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
    gpu.yield %r : tensor<1x3x8x8xf32>
  }) {op_name = "pointwise"} : () -> tensor<1x3x8x8xf32>
  return %2 : tensor<1x3x8x8xf32>
}
