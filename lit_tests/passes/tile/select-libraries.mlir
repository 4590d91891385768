// RUN: magweld-opt --form-tile-graph="device=h100" --select-libraries %s | filecheck %s --check-prefixes=CHECK,AUTO
// RUN: magweld-opt --form-tile-graph="device=h100" --select-libraries="library=always" %s | filecheck %s --check-prefixes=CHECK,ALWAYS
// RUN: magweld-opt --form-tile-graph="device=h100" --select-libraries="library=never" %s | filecheck %s --check-prefixes=NEVER
// RUN: magweld-opt --form-tile-graph="device=v100" --select-libraries %s | filecheck %s --check-prefixes=UNKNOWN

// NEVER-NOT: "library"
// A device that states no rates is left to select-implementation.
// UNKNOWN-NOT: implementation

// A large product is computed by the library, though what follows is a kernel of its own.
//
// CHECK-LABEL: func.func @large(
// CHECK:         {implementation = "library", op_name = "matmul_0"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "global"}
// CHECK:         {implementation = "generated", op_name = "exp_0"}
func.func @large(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>)
    -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4096x4096xf32>, tensor<4096x4096xf32>)
      outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %r = linalg.exp ins(%p : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>)
      -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

// A product that waits for memory is worth more in one kernel with what follows.
//
// CHECK-LABEL: func.func @narrow(
// AUTO:          {implementation = "generated", op_name = "matmul_0"}
// ALWAYS:        {implementation = "library", op_name = "matmul_0"}
// CHECK:         {implementation = "generated", op_name = "exp_0"}
func.func @narrow(%a: tensor<65536x64xf32>, %b: tensor<64x64xf32>)
    -> tensor<65536x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<65536x64xf32>) -> tensor<65536x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<65536x64xf32>, tensor<64x64xf32>)
      outs(%f : tensor<65536x64xf32>) -> tensor<65536x64xf32>
  %r = linalg.exp ins(%p : tensor<65536x64xf32>) outs(%e : tensor<65536x64xf32>)
      -> tensor<65536x64xf32>
  return %r : tensor<65536x64xf32>
}

// Sums of halves are rounded by the call: the edge stays inside.
//
// CHECK-LABEL: func.func @rounded(
// CHECK:         {implementation = "library", op_name = "matmul_0"}
// CHECK:         "tile_graph.connect"(%{{.+}}) {level = "register"}
// CHECK:         {implementation = "library", op_name = "generic_0"}
func.func @rounded(%a: tensor<4096x4096xbf16>, %b: tensor<4096x4096xbf16>)
    -> tensor<4096x4096xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>)
      outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %h = tensor.empty() : tensor<4096x4096xbf16>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4096x4096xf32>) outs(%h : tensor<4096x4096xbf16>) {
  ^bb0(%s: f32, %o: bf16):
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x4096xbf16>
  return %r : tensor<4096x4096xbf16>
}

// So is a row of halves that is added before they are rounded: it is read as it is.
//
// CHECK-LABEL: func.func @with_bias(
// CHECK-SAME:      %{{.+}}: tensor<4096x4096xbf16>, %{{.+}}: tensor<4096x4096xbf16>, %[[BIAS:.+]]: tensor<4096xbf16>)
// CHECK:         {implementation = "library", op_name = "matmul_0"}
// CHECK:         %[[SUMS:.+]] = "tile_graph.connect"(%{{.+}}) {level = "register"}
// CHECK:         "tile_graph.operator"
// CHECK:           linalg.generic {{.*}} ins(%[[SUMS]], %[[BIAS]] : tensor<4096x4096xf32>, tensor<4096xbf16>)
// CHECK:             arith.extf
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        arith.truncf
// CHECK:         {implementation = "library", op_name = "generic_{{[0-9]}}"}
// CHECK-NOT:     "tile_graph.operator"
// CHECK:         return
func.func @with_bias(%a: tensor<4096x4096xbf16>, %b: tensor<4096x4096xbf16>,
                     %bias: tensor<4096xbf16>) -> tensor<4096x4096xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>)
      outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %we = tensor.empty() : tensor<4096xf32>
  %w = linalg.generic {
      indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>],
      iterator_types = ["parallel"]}
      ins(%bias : tensor<4096xbf16>) outs(%we : tensor<4096xf32>) {
  ^bb0(%s: bf16, %o: f32):
    %t = arith.extf %s : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %w : tensor<4096x4096xf32>, tensor<4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%l: f32, %k: f32, %o: f32):
    %t = arith.addf %l, %k : f32
    linalg.yield %t : f32
  } -> tensor<4096x4096xf32>
  %h = tensor.empty() : tensor<4096x4096xbf16>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4096x4096xf32>) outs(%h : tensor<4096x4096xbf16>) {
  ^bb0(%l: f32, %o: bf16):
    %t = arith.truncf %l : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x4096xbf16>
  return %r : tensor<4096x4096xbf16>
}

// Sums of halves that are read as they are have no call: it would round them.
//
// CHECK-LABEL: func.func @unrounded(
// CHECK:         {implementation = "generated", op_name = "matmul_0"}
// CHECK:         {implementation = "generated", op_name = "exp_0"}
func.func @unrounded(%a: tensor<4096x4096xbf16>, %b: tensor<4096x4096xbf16>)
    -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>)
      outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %r = linalg.exp ins(%p : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>)
      -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

// A convolution over channels is one; of each channel by itself it waits for memory.
//
// CHECK-LABEL: func.func @windows(
// CHECK:         {implementation = "library", op_name = "conv_2d_nchw_fchw_0"}
// AUTO:          {implementation = "generated", op_name = "depthwise_conv_2d_nchw_chw_0"}
// ALWAYS:        {implementation = "library", op_name = "depthwise_conv_2d_nchw_chw_0"}
func.func @windows(%x: tensor<8x64x58x58xf32>, %w: tensor<64x64x3x3xf32>,
                   %d: tensor<64x3x3xf32>)
    -> (tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64x56x56xf32>)
      -> tensor<8x64x56x56xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                 strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>)
      outs(%f : tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32>
  %1 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>,
                                          strides = dense<1> : vector<2xi64>}
      ins(%x, %d : tensor<8x64x58x58xf32>, tensor<64x3x3xf32>)
      outs(%f : tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32>
  return %0, %1 : tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>
}

// An accumulator that starts elsewhere has no call.
//
// CHECK-LABEL: func.func @accumulates(
// CHECK:         {implementation = "generated", op_name = "matmul_0"}
func.func @accumulates(%a: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = linalg.matmul ins(%a, %a : tensor<4096x4096xf32>, tensor<4096x4096xf32>)
      outs(%a : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}
