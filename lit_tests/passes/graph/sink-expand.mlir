// RUN: magweld-opt --sink-expand --canonicalize %s | filecheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>

// The bias and another tensor are added on the dimensions of the product, in which halves
// are widened as well.
// CHECK-LABEL: func.func @linear(
// CHECK-SAME:    %[[X:.+]]: tensor<6x4xf32>, %[[W:.+]]: tensor<4x5xf32>, %[[B:.+]]: tensor<5xf32>, %[[R:.+]]: tensor<2x3x5xbf16>)
// CHECK:         %[[P:.+]] = linalg.matmul
// CHECK:         %[[S:.+]] = linalg.generic {{.*}} ins(%[[P]], %[[B]] : tensor<6x5xf32>, tensor<5xf32>)
// CHECK:         %[[JOINED:.+]] = tensor.collapse_shape %[[R]] {{\[\[0, 1\], \[2\]\]}} : tensor<2x3x5xbf16> into tensor<6x5xbf16>
// CHECK:         %[[WIDE:.+]] = linalg.generic {{.*}} ins(%[[JOINED]] : tensor<6x5xbf16>)
// CHECK:         %[[T:.+]] = linalg.generic {{.*}} ins(%[[S]], %[[WIDE]] : tensor<6x5xf32>, tensor<6x5xf32>)
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[T]] {{\[\[0, 1\], \[2\]\]}} output_shape [2, 3, 5]
// CHECK:         return %[[E]]
func.func @linear(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>, %r: tensor<2x3x5xbf16>) -> tensor<2x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %p = linalg.matmul ins(%x, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%f : tensor<6x5xf32>) -> tensor<6x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %o = tensor.empty() : tensor<2x3x5xf32>
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<2x3x5xbf16>) outs(%o : tensor<2x3x5xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %1 = arith.extf %in : bf16 to f32
    linalg.yield %1 : f32
  } -> tensor<2x3x5xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split, %b : tensor<2x3x5xf32>, tensor<5xf32>) outs(%o : tensor<2x3x5xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %1 = arith.addf %in, %bias : f32
    linalg.yield %1 : f32
  } -> tensor<2x3x5xf32>
  %t = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %wide : tensor<2x3x5xf32>, tensor<2x3x5xf32>) outs(%o : tensor<2x3x5xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %1 = arith.addf %in, %other : f32
    linalg.yield %1 : f32
  } -> tensor<2x3x5xf32>
  return %t : tensor<2x3x5xf32>
}

// A tensor that has one of the dimensions that would be joined has no part in it.
// CHECK-LABEL: func.func @part(
// CHECK:         %[[P:.+]] = linalg.matmul
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[P]]
// CHECK:         linalg.generic {{.*}} ins(%[[E]], %{{.+}} : tensor<2x3x5xf32>, tensor<2x5xf32>)
func.func @part(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %b: tensor<2x5xf32>) -> tensor<2x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %p = linalg.matmul ins(%x, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%f : tensor<6x5xf32>) -> tensor<6x5xf32>
  %split = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %o = tensor.empty() : tensor<2x3x5xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%split, %b : tensor<2x3x5xf32>, tensor<2x5xf32>) outs(%o : tensor<2x3x5xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %1 = arith.addf %in, %bias : f32
    linalg.yield %1 : f32
  } -> tensor<2x3x5xf32>
  return %s : tensor<2x3x5xf32>
}
