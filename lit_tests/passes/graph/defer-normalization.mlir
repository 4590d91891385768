// RUN: magweld-opt --defer-normalization %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Rows of the product are multiplied instead of those of its operand.
//
// CHECK-DAG:   #[[ALL:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:      %{{.+}}: tensor<8x64xf32>, %[[V:.+]]: tensor<64x16xf32>)
// CHECK:         arith.addf
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK:           arith.divf
// CHECK:         %[[P:.+]] = linalg.generic {{.+}} ins(%{{.+}}, %[[V]] :
// CHECK:         %[[O:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]], {{.+}} ins(%[[P]], %[[R]] : tensor<8x16xf32>, tensor<8xf32>)
// CHECK:           arith.mulf
// CHECK:         return %[[O]]
//
// Without a maximum that is subtracted the product could overflow.
//
// CHECK-LABEL: func.func @unbounded(
// CHECK:         arith.mulf
// CHECK:         %[[O:.+]] = linalg.generic
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         return %[[O]]
//
// So could one with factors that are not made of the sums.
//
// CHECK-LABEL: func.func @other_factors(
// CHECK:         arith.mulf
// CHECK:         %[[O:.+]] = linalg.generic
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         return %[[O]]
//
// Wide products are left alone: there would be more to multiply.
//
// CHECK-LABEL: func.func @wide(
// CHECK:         arith.mulf
// CHECK:         %[[O:.+]] = linalg.generic
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         return %[[O]]

func.func @attention(%x: tensor<8x64xf32>, %v: tensor<64x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %e3 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<8x64xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %unit, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%i : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

func.func @unbounded(%x: tensor<8x64xf32>, %v: tensor<64x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %e3 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.minimumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<8x64xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %unit, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%i : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

func.func @other_factors(%x: tensor<8x64xf32>, %v: tensor<64x16xf32>, %f: tensor<8xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %e3 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<8x64xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%f : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %unit, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%i : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

func.func @wide(%x: tensor<8x64xf32>, %v: tensor<64x96xf32>) -> tensor<8x96xf32> {
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %e3 = tensor.empty() : tensor<8x96xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<8x64xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %unit, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x96xf32>) -> tensor<8x96xf32>
  %y = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<8x64xf32>, tensor<64x96xf32>)
      outs(%i : tensor<8x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}
