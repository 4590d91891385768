// A linear layer on a batch of rows of tokens is one kernel on a GPU, with its bias, its
// activation and what is added: all of them are computed on the rows of the product.
//
// RUN: magweld-opt %s --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled | filecheck %s
// RUN: magweld-opt %s --target=rocdl:gfx942 --compile-from=linalg --compile-to=scheduled | filecheck %s
//
// CHECK-LABEL: func.func @main(
// CHECK:         "tile_graph.subgraph"(
// CHECK:         linalg.matmul
// CHECK-NOT:     "tile_graph.subgraph"(
// CHECK:         return
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d2)>
func.func @main(%x: tensor<8x128x768xf32>, %w: tensor<768x512xf32>, %b: tensor<512xf32>, %r: tensor<8x128x512xf32>) -> tensor<8x128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x128x768xf32> into tensor<1024x768xf32>
  %e = tensor.empty() : tensor<1024x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x512xf32>) -> tensor<1024x512xf32>
  %p = linalg.matmul ins(%rows, %w : tensor<1024x768xf32>, tensor<768x512xf32>) outs(%f : tensor<1024x512xf32>) -> tensor<1024x512xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [8, 128, 512] : tensor<1024x512xf32> into tensor<8x128x512xf32>
  %o = tensor.empty() : tensor<8x128x512xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split, %b : tensor<8x128x512xf32>, tensor<512xf32>) outs(%o : tensor<8x128x512xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %1 = arith.addf %in, %bias : f32
    %2 = math.tanh %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x128x512xf32>
  %t = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %r : tensor<8x128x512xf32>, tensor<8x128x512xf32>) outs(%o : tensor<8x128x512xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %1 = arith.addf %in, %other : f32
    linalg.yield %1 : f32
  } -> tensor<8x128x512xf32>
  return %t : tensor<8x128x512xf32>
}
