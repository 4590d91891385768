// RUN: magweld-opt --sink-concat --split-input-file %s | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// Each part is computed by itself, with its part of the other operand.
//
// CHECK-LABEL: func.func @sink(
// CHECK-SAME:      %[[A:.+]]: tensor<4x8xf32>, %[[B:.+]]: tensor<4x4xf32>, %[[S:.+]]: tensor<12xf32>)
// CHECK:         %[[S0:.+]] = tensor.extract_slice %[[S]][0] [8] [1]
// CHECK:         %[[Y0:.+]] = linalg.generic {{.+}} ins(%[[A]], %[[S0]] :
// CHECK:         %[[S1:.+]] = tensor.extract_slice %[[S]][8] [4] [1]
// CHECK:         %[[Y1:.+]] = linalg.generic {{.+}} ins(%[[B]], %[[S1]] :
// CHECK:         %[[C:.+]] = tensor.concat dim(1) %[[Y0]], %[[Y1]]
// CHECK-NEXT:    return %[[C]]
func.func @sink(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>, %s: tensor<12xf32>)
    -> tensor<4x12xf32> {
  %c = tensor.concat dim(1) %a, %b
      : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x12xf32>
  %e = tensor.empty() : tensor<4x12xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c, %s : tensor<4x12xf32>, tensor<12xf32>) outs(%e : tensor<4x12xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>

// A sum over the concatenation needs it as well: it stays.
//
// CHECK-LABEL: func.func @also_summed(
// CHECK:         %[[C:.+]] = tensor.concat dim(1)
// CHECK:         linalg.generic {{.+}} ins(%[[C]]
// CHECK:         linalg.generic {{.+}} ins(%[[C]]
func.func @also_summed(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>)
    -> (tensor<4x12xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = tensor.concat dim(1) %a, %b
      : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x12xf32>
  %e = tensor.empty() : tensor<4x12xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<4x12xf32>) outs(%e : tensor<4x12xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<4x12xf32>
  %t = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #first],
                       iterator_types = ["parallel", "reduction"]}
      ins(%c : tensor<4x12xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.addf %p, %o : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  return %y, %r : tensor<4x12xf32>, tensor<4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Numbers of the loops would be others in each part.
//
// CHECK-LABEL: func.func @reads_index(
// CHECK:         %[[C:.+]] = tensor.concat dim(1)
// CHECK:         linalg.generic {{.+}} ins(%[[C]]
func.func @reads_index(%a: tensor<4x8xi64>, %b: tensor<4x4xi64>) -> tensor<4x12xi64> {
  %c = tensor.concat dim(1) %a, %b
      : (tensor<4x8xi64>, tensor<4x4xi64>) -> tensor<4x12xi64>
  %e = tensor.empty() : tensor<4x12xi64>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<4x12xi64>) outs(%e : tensor<4x12xi64>) {
  ^bb0(%p: i64, %o: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %m = arith.addi %p, %n : i64
    linalg.yield %m : i64
  } -> tensor<4x12xi64>
  return %y : tensor<4x12xi64>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Slices that alone are read, and together are no more than all, are computed alone.
//
// CHECK-LABEL: func.func @slices_alone(
// CHECK-SAME:      %[[X:.+]]: tensor<4x12xf32>)
// CHECK:         %[[R:.+]] = tensor.extract_slice %[[X]][0, 8] [4, 4] [1, 1]
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} ins(%[[R]] : tensor<4x4xf32>)
// CHECK:         return %[[Y]]
func.func @slices_alone(%x: tensor<4x12xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x12xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x12xf32>) outs(%e : tensor<4x12xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<4x12xf32>
  %s = tensor.extract_slice %y[0, 8] [4, 4] [1, 1] : tensor<4x12xf32> to tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Dimensions of extent one that the slice drops are dropped behind the operation.
//
// CHECK-LABEL: func.func @row_alone(
// CHECK-SAME:      %[[X:.+]]: tensor<2x16xf32>)
// CHECK:         %[[R:.+]] = tensor.extract_slice %[[X]][1, 0] [1, 16] [1, 1]
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} ins(%[[R]] : tensor<1x16xf32>)
// CHECK:         %[[C:.+]] = tensor.collapse_shape %[[Y]] {{\[\[}}0, 1]]
// CHECK:         return %[[C]]
func.func @row_alone(%x: tensor<2x16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<2x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x16xf32>) outs(%e : tensor<2x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<2x16xf32>
  %s = tensor.extract_slice %y[1, 0] [1, 16] [1, 1] : tensor<2x16xf32> to tensor<16xf32>
  return %s : tensor<16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Two slices that overlap would be computed twice in part.
//
// CHECK-LABEL: func.func @overlapping(
// CHECK-SAME:      %[[X:.+]]: tensor<4x12xf32>)
// CHECK:         linalg.generic {{.+}} ins(%[[X]] : tensor<4x12xf32>)
// CHECK-COUNT-2: tensor.extract_slice
func.func @overlapping(%x: tensor<4x12xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x12xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x12xf32>) outs(%e : tensor<4x12xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<4x12xf32>
  %s = tensor.extract_slice %y[0, 0] [4, 8] [1, 1] : tensor<4x12xf32> to tensor<4x8xf32>
  %t = tensor.extract_slice %y[0, 4] [4, 8] [1, 1] : tensor<4x12xf32> to tensor<4x8xf32>
  return %s, %t : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// What seventeen operands make is computed in one piece, where sixteen are computed alone.
//
// CHECK-LABEL: func.func @many(
// CHECK:         %[[C:.+]] = tensor.concat dim(1)
// CHECK:         linalg.generic {{.+}} ins(%[[C]] : tensor<4x34xf32>)
// CHECK-COUNT-16: linalg.generic {{.+}} ins(%{{.+}} : tensor<4x2xf32>)
// CHECK-NOT:     linalg.generic
func.func @many(%a: tensor<4x2xf32>) -> (tensor<4x34xf32>, tensor<4x32xf32>) {
  %c = tensor.concat dim(1) %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a
      : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x34xf32>
  %e = tensor.empty() : tensor<4x34xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<4x34xf32>) outs(%e : tensor<4x34xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<4x34xf32>
  %d = tensor.concat dim(1) %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a
      : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x32xf32>
  %f = tensor.empty() : tensor<4x32xf32>
  %z = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<4x32xf32>) outs(%f : tensor<4x32xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<4x32xf32>
  return %y, %z : tensor<4x34xf32>, tensor<4x32xf32>
}

// -----

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>

// A convolution would compute it again for each tile that reads it: it stays in one piece.
//
// CHECK-LABEL: func.func @feeds_window(
// CHECK:         %[[C:.+]] = tensor.concat dim(1)
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} ins(%[[C]] : tensor<1x4x8x8xf32>)
// CHECK:         linalg.conv_2d_nchw_fchw ins(%[[Y]], %{{.+}} :
func.func @feeds_window(%a: tensor<1x2x8x8xf32>, %b: tensor<1x2x8x8xf32>,
                        %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %c = tensor.concat dim(1) %a, %b
      : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x8x8xf32>
  %e = tensor.empty() : tensor<1x4x8x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x4x8x8xf32>) outs(%e : tensor<1x4x8x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<1x4x8x8xf32>
  %f = tensor.empty() : tensor<1x4x6x6xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%y, %w : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>)
      outs(%f : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %r : tensor<1x4x6x6xf32>
}
