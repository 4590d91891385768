// RUN: magweld-opt --absorb-widening %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @both(
// CHECK-SAME:      %[[X:.+]]: tensor<4x8xf16>, %[[W:.+]]: tensor<8x16xbf16>, %[[C:.+]]: tensor<4x16xf32>
// CHECK:         %[[R:.+]] = linalg.matmul ins(%[[X]], %[[W]] : tensor<4x8xf16>, tensor<8x16xbf16>) outs(%[[C]] : tensor<4x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT:    return %[[R]]
func.func @both(%x: tensor<4x8xf16>, %w: tensor<8x16xbf16>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e0 = tensor.empty() : tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf16>) outs(%e0 : tensor<4x8xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x16xbf16>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%a: bf16, %u: f32):
    %n = arith.extf %a : bf16 to f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  %r = linalg.matmul ins(%0, %1 : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// What is rounded on the way, in another order, or no half stays.
// CHECK-LABEL: func.func @near_misses(
// CHECK:         %[[A:.+]] = linalg.generic
// CHECK:         %[[B:.+]] = linalg.generic
// CHECK:         linalg.matmul ins(%[[A]], %[[B]] : tensor<8x8xf32>, tensor<8x8xf32>)
func.func @near_misses(%x: tensor<8x8xf32>, %w: tensor<8x8xf16>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e0 = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e0 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %u: f32):
    %t = arith.truncf %a : f32 to f16
    %n = arith.extf %t : f16 to f32
    linalg.yield %n : f32
  } -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x8xf16>) outs(%e0 : tensor<8x8xf32>) {
  ^bb0(%a: f16, %u: f32):
    %n = arith.extf %a : f16 to f32
    linalg.yield %n : f32
  } -> tensor<8x8xf32>
  %r = linalg.matmul ins(%0, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
