// RUN: magweld-opt --pack-strided-operands %s | filecheck %s

#rows = affine_map<(d0, d1) -> (d0)>
#columns = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#points = affine_map<(d0, d1, d2) -> (d1, d0)>
#others = affine_map<(d0, d1, d2) -> (d2, d0)>
#three = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// The second operand is read with a stride of three for each of 200 rows; the first one
// does not change along a vector. One copy serves both operations.
// CHECK-DAG: #[[READ:.+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[WRITTEN:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[POINTS:.+]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[PACKED:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func.func @differences(
// CHECK-SAME:      %[[X:.+]]: tensor<200x3xf32>)
// CHECK:         %[[P:.+]] = linalg.generic {indexing_maps = [#[[READ]], #[[WRITTEN]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]] : tensor<200x3xf32>) outs(%{{.+}} : tensor<3x200xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[POINTS]], #[[PACKED]], #{{.+}}], {{.+}} ins(%[[X]], %[[P]] : tensor<200x3xf32>, tensor<3x200xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[PACKED]], #[[POINTS]], #{{.+}}], {{.+}} ins(%[[P]], %[[X]] : tensor<3x200xf32>, tensor<200x3xf32>)
func.func @differences(%x: tensor<200x3xf32>) -> (tensor<3x200x200xf32>, tensor<3x200x200xf32>) {
  %e = tensor.empty() : tensor<3x200x200xf32>
  %d = linalg.generic {indexing_maps = [#points, #others, #three], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %x : tensor<200x3xf32>, tensor<200x3xf32>) outs(%e : tensor<3x200x200xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<3x200x200xf32>
  %s = linalg.generic {indexing_maps = [#others, #points, #three], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %x : tensor<200x3xf32>, tensor<200x3xf32>) outs(%e : tensor<3x200x200xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.maximumf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<3x200x200xf32>
  return %d, %s : tensor<3x200x200xf32>, tensor<3x200x200xf32>
}

// A column of a matrix is strided where it is.
// CHECK-LABEL: func.func @column(
// CHECK:         %[[S:.+]] = tensor.extract_slice %{{.+}}[0, 1] [200, 1] [1, 1]
// CHECK:         %[[P:.+]] = linalg.generic {{{.+}} ins(%[[S]] : tensor<200xf32>) outs(%{{.+}} : tensor<200xf32>)
// CHECK:         linalg.generic {{{.+}} ins(%[[S]], %[[P]] : tensor<200xf32>, tensor<200xf32>) outs(%{{.+}} : tensor<200x200xf32>)
func.func @column(%x: tensor<200x4xf32>) -> tensor<200x200xf32> {
  %s = tensor.extract_slice %x[0, 1] [200, 1] [1, 1] : tensor<200x4xf32> to tensor<200xf32>
  %e = tensor.empty() : tensor<200x200xf32>
  %d = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel"]} ins(%s, %s : tensor<200xf32>, tensor<200xf32>) outs(%e : tensor<200x200xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<200x200xf32>
  return %d : tensor<200x200xf32>
}

// Each element is read once.
// CHECK-LABEL: func.func @once(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @once(%x: tensor<200x200xf32>) -> tensor<200x200xf32> {
  %e = tensor.empty() : tensor<200x200xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<200x200xf32>) outs(%e : tensor<200x200xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.absf %a : f32
    linalg.yield %r : f32
  } -> tensor<200x200xf32>
  return %d : tensor<200x200xf32>
}

// An operation this small is done before a copy is.
// CHECK-LABEL: func.func @small(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @small(%x: tensor<40x3xf32>) -> tensor<3x40x40xf32> {
  %e = tensor.empty() : tensor<3x40x40xf32>
  %d = linalg.generic {indexing_maps = [#points, #others, #three], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %x : tensor<40x3xf32>, tensor<40x3xf32>) outs(%e : tensor<3x40x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<3x40x40xf32>
  return %d : tensor<3x40x40xf32>
}

// Products of matrices pack for themselves.
// CHECK-LABEL: func.func @product(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @product(%x: tensor<200x6xf32>, %y: tensor<200x6xf32>, %z: tensor<200x200xf32>) -> tensor<200x200xf32> {
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<200x6xf32>, tensor<200x6xf32>) outs(%z : tensor<200x200xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<200x200xf32>
  return %d : tensor<200x200xf32>
}
