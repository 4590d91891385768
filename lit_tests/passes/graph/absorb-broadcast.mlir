// RUN: magweld-opt --absorb-broadcast %s | filecheck %s

#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d2, d1)>
#row = affine_map<(d0, d1, d2) -> (d1)>

// A weight that is repeated for every row of a batch is read as it is.
// CHECK: #[[W:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-LABEL: func.func @weight(
// CHECK-SAME:      %[[X:.+]]: tensor<5x7x8xf32>, %[[WEIGHT:.+]]: tensor<8x4xf32>,
// CHECK:         linalg.generic {indexing_maps = [#{{.+}}, #[[W]], #{{.+}}]
// CHECK-SAME:      ins(%[[X]], %[[WEIGHT]] : tensor<5x7x8xf32>, tensor<8x4xf32>)
func.func @weight(%x: tensor<5x7x8xf32>, %weight: tensor<8x4xf32>,
                  %zero: tensor<5x7x4xf32>) -> tensor<5x7x4xf32> {
  %e = tensor.empty() : tensor<5x8x4xf32>
  %r = linalg.generic {indexing_maps = [#last, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weight : tensor<8x4xf32>) outs(%e : tensor<5x8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<5x8x4xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %r : tensor<5x7x8xf32>, tensor<5x8x4xf32>)
      outs(%zero : tensor<5x7x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %c, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<5x7x4xf32>
  return %0 : tensor<5x7x4xf32>
}

// CHECK-LABEL: func.func @batch_matmul(
// CHECK-SAME:      %[[X:.+]]: tensor<5x7x8xf32>, %[[WEIGHT:.+]]: tensor<8x4xf32>,
// CHECK:         linalg.generic {indexing_maps = [#{{.+}}, #[[W]], #{{.+}}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:      ins(%[[X]], %[[WEIGHT]] : tensor<5x7x8xf32>, tensor<8x4xf32>)
func.func @batch_matmul(%x: tensor<5x7x8xf32>, %weight: tensor<8x4xf32>,
                        %zero: tensor<5x7x4xf32>) -> tensor<5x7x4xf32> {
  %e = tensor.empty() : tensor<5x8x4xf32>
  %r = linalg.generic {indexing_maps = [#last, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weight : tensor<8x4xf32>) outs(%e : tensor<5x8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<5x8x4xf32>
  %0 = linalg.batch_matmul ins(%x, %r : tensor<5x7x8xf32>, tensor<5x8x4xf32>)
      outs(%zero : tensor<5x7x4xf32>) -> tensor<5x7x4xf32>
  return %0 : tensor<5x7x4xf32>
}

// So is one of halves that is widened in the product.
// CHECK-LABEL: func.func @batch_matmul_of_halves(
// CHECK-SAME:      %[[X:.+]]: tensor<5x7x8xbf16>, %[[WEIGHT:.+]]: tensor<8x4xbf16>
// CHECK-NOT:     linalg.batch_matmul
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[X]], %[[WEIGHT]] : tensor<5x7x8xbf16>, tensor<8x4xbf16>)
func.func @batch_matmul_of_halves(%x: tensor<5x7x8xbf16>, %weight: tensor<8x4xbf16>,
                                  %zero: tensor<5x7x4xf32>) -> tensor<5x7x4xf32> {
  %e = tensor.empty() : tensor<5x8x4xbf16>
  %r = linalg.generic {indexing_maps = [#last, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weight : tensor<8x4xbf16>) outs(%e : tensor<5x8x4xbf16>) {
  ^bb0(%a: bf16, %b: bf16):
    linalg.yield %a : bf16
  } -> tensor<5x8x4xbf16>
  %0 = linalg.batch_matmul ins(%x, %r : tensor<5x7x8xbf16>, tensor<5x8x4xbf16>)
      outs(%zero : tensor<5x7x4xf32>) -> tensor<5x7x4xf32>
  return %0 : tensor<5x7x4xf32>
}

// A loop that nothing else indexes keeps the operand that tells its extent.
// CHECK-LABEL: func.func @only_index(
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[R]] : tensor<5x8x4xf32>)
func.func @only_index(%x: tensor<8x4xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<5x8x4xf32>
  %r = linalg.generic {indexing_maps = [#last, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<5x8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<5x8x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%r : tensor<5x8x4xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Dimensions in another order stay: that is a transpose.
// CHECK-LABEL: func.func @other_order(
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[R]] : tensor<5x8x4xf32>)
func.func @other_order(%x: tensor<4x8xf32>) -> tensor<5x8x4xf32> {
  %e = tensor.empty() : tensor<5x8x4xf32>
  %r = linalg.generic {indexing_maps = [#turned, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<5x8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<5x8x4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : tensor<5x8x4xf32>) outs(%e : tensor<5x8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<5x8x4xf32>
  return %0 : tensor<5x8x4xf32>
}
