// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=v100 library=never})" %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(split-reductions{device=%S/Inputs/toy.toml#flat library=never})" %s | filecheck %s --check-prefix=FLAT

// Units without memory of their own do nothing in tiles.
// FLAT-NOT: magweld.parts

#row = affine_map<(d0, d1) -> (d0, d1)>
#sum = affine_map<(d0, d1) -> (d0)>
#columns = affine_map<(d0, d1) -> (d1)>
#whole = affine_map<(d0, d1) -> ()>

// The squares are made in parts as well; the other reader of the shifted rows keeps
// its own.
// CHECK-LABEL: func.func @sum_of_squares(
// CHECK-SAME:      %[[X:.+]]: tensor<2x1048576xf32>, %[[M:.+]]: tensor<2xf32>)
// CHECK:         linalg.generic {{.+}} ins(%[[X]], %[[M]] :
// CHECK:           arith.subf
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2]] output_shape [2, [[P:[0-9]+]], [[K:[0-9]+]]]
// CHECK:         %[[D:.+]] = linalg.generic {{.+}} ins(%[[E]], %[[M]] : tensor<2x[[P]]x[[K]]xf32>, tensor<2xf32>)
// CHECK:           arith.subf
// CHECK:         %[[S:.+]] = linalg.generic {{.+}} ins(%[[D]], %[[D]] :
// CHECK:           arith.mulf
// CHECK:         %[[I:.+]] = linalg.fill {{.+}} -> tensor<[[P]]x2xf32>
// CHECK:         %[[PART:.+]] = linalg.generic {{{.+}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[S]] : tensor<2x[[P]]x[[K]]xf32>) outs(%[[I]] : {{.+}}) attrs = {magweld.parts = [[P]] : i64}
// CHECK:           arith.addf
// CHECK:         %[[R:.+]] = linalg.generic {{{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[PART]] : tensor<[[P]]x2xf32>)
// CHECK:           arith.addf
// CHECK:         return %[[R]], %
func.func @sum_of_squares(%x: tensor<2x1048576xf32>, %m: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2x1048576xf32>) {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<2x1048576xf32>
  %d = linalg.generic {indexing_maps = [#row, #sum, #row],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<2x1048576xf32>, tensor<2xf32>)
      outs(%wide : tensor<2x1048576xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<2x1048576xf32>
  %s = linalg.generic {indexing_maps = [#row, #row, #row],
      iterator_types = ["parallel", "parallel"]}
      ins(%d, %d : tensor<2x1048576xf32>, tensor<2x1048576xf32>)
      outs(%wide : tensor<2x1048576xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<2x1048576xf32>
  %empty = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#row, #sum],
      iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<2x1048576xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %r, %d : tensor<2xf32>, tensor<2x1048576xf32>
}

// A product with a long reduction: both operands are cut where it is.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:      %[[A:.+]]: tensor<16x65536xf32>, %[[B:.+]]: tensor<65536x16xf32>)
// CHECK:         %[[EA:.+]] = tensor.expand_shape %[[A]] {{\[}}[0], [1, 2]] output_shape [16, [[P:[0-9]+]], [[K:[0-9]+]]]
// CHECK:         %[[EB:.+]] = tensor.expand_shape %[[B]] {{\[}}[0, 1], [2]] output_shape [[[P]], [[K]], 16]
// CHECK:         %[[PART:.+]] = linalg.generic {{.+}} ins(%[[EA]], %[[EB]] : {{.+}}) outs({{.+}} : tensor<[[P]]x16x16xf32>)
// CHECK:         linalg.generic {{.+}} ins(%[[PART]] : tensor<[[P]]x16x16xf32>)
func.func @product(%a: tensor<16x65536xf32>, %b: tensor<65536x16xf32>)
    -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>)
      -> tensor<16x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<16x65536xf32>, tensor<65536x16xf32>)
      outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}

// Largest and smallest may be taken more than once.
// CHECK-LABEL: func.func @largest(
// CHECK:         linalg.generic {{.+}} attrs = {magweld.parts =
// CHECK:           arith.maximumf
// CHECK:         linalg.generic
// CHECK:           arith.maximumf
func.func @largest(%x: tensor<1024x4096xf32>) -> tensor<f32> {
  %low = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#row, #whole],
      iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<1024x4096xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// There are enough rows.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     magweld.parts
func.func @rows(%x: tensor<4096x1024xf32>) -> tensor<4096xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4096xf32>)
      -> tensor<4096xf32>
  %r = linalg.generic {indexing_maps = [#row, #sum],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4096x1024xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<4096xf32>
  return %r : tensor<4096xf32>
}

// What is added first would be added with every part.
// CHECK-LABEL: func.func @from_one(
// CHECK-NOT:     magweld.parts
func.func @from_one(%x: tensor<1024x4096xf32>) -> tensor<f32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#row, #whole],
      iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<1024x4096xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// 1048573 is prime: no equal parts.
// CHECK-LABEL: func.func @prime(
// CHECK-NOT:     magweld.parts
func.func @prime(%x: tensor<1x1048573xf32>) -> tensor<1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1xf32>) -> tensor<1xf32>
  %r = linalg.generic {indexing_maps = [#row, #sum],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x1048573xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}

// Narrow floats would be rounded between the phases.
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT:     magweld.parts
func.func @narrow(%x: tensor<1024x4096xbf16>) -> tensor<4096xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<4096xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<4096xbf16>)
      -> tensor<4096xbf16>
  %r = linalg.generic {indexing_maps = [#row, #columns],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<1024x4096xbf16>) outs(%init : tensor<4096xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %v = arith.addf %a, %out : bf16
    linalg.yield %v : bf16
  } -> tensor<4096xbf16>
  return %r : tensor<4096xbf16>
}

#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d1, d2)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>

// Parts of a result that is larger than both operands would be more to move than all.
// CHECK-LABEL: func.func @scores(
// CHECK-NOT:     magweld.parts
func.func @scores(%a: tensor<16384x128xf32>, %b: tensor<16384x128xf32>)
    -> tensor<16384x16384xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16384x16384xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16384x16384xf32>)
      -> tensor<16384x16384xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #result],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16384x128xf32>, tensor<16384x128xf32>)
      outs(%init : tensor<16384x16384xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<16384x16384xf32>
  return %r : tensor<16384x16384xf32>
}
