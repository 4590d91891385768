// RUN: magweld-opt --form-tile-graph=device=a100 %s | filecheck %s

#id = affine_map<(i, j) -> (i, j)>

func.func @chain(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>)
    outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = linalg.exp ins(%0 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  %2 = linalg.exp ins(%1 : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

func.func @two_reads(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %1 = linalg.generic {
      indexing_maps = [#id, affine_map<(i, j) -> (j, i)>, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%0, %0 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %2 = linalg.log ins(%0 : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %3 = linalg.add ins(%1, %2 : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x8x8xf32>)
    -> tensor<1x4x8x8xf32>
  %0 = linalg.conv_2d_nchw_fchw
    ins(%pad, %w : tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>)
    outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

func.func @pad_of_a_pooling(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %lowest : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x3x8x8xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<1x3x8x8xf32>)
    -> tensor<1x3x8x8xf32>
  %0 = linalg.pooling_nchw_max
    ins(%pad, %window : tensor<1x3x10x10xf32>, tensor<3x3xf32>)
    outs(%init : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

func.func private @external_0(tensor<4x6xf32>) -> tensor<4x6xf32>
    attributes {magweld.external = "sort"}
func.func @views_calls_and_data(%a: tensor<24xf32>) -> tensor<5x6xf32> {
  %table = arith.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]> : tensor<1x6xf32>
  %e = tensor.empty() : tensor<24xf32>
  %0 = linalg.exp ins(%a : tensor<24xf32>) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [4, 6]
    : tensor<24xf32> into tensor<4x6xf32>
  %2 = func.call @external_0(%1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %3 = linalg.add ins(%1, %2 : tensor<4x6xf32>, tensor<4x6xf32>)
    outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = tensor.concat dim(0) %3, %table
    : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}

func.func @two_results(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %x = tensor.empty() : tensor<4xf32>
  %y = tensor.empty() : tensor<4xi64>
  %0:2 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                       affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
    ins(%a : tensor<4xf32>) outs(%x, %y : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%p: f32, %u: f32, %v: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %p, %n : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi64>
}

func.func @results_without_operator(%a: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>) {
  %one = arith.constant 1.0 : f32
  %same = arith.constant dense<2.0> : tensor<2xf32>
  %empty = tensor.empty() : tensor<2xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %any = tensor.empty() : tensor<2xi64>
  return %a, %same, %ones, %any
    : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>
}
