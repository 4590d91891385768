// RUN: magweld-opt --interchange-short-reductions %s | filecheck %s

#rows = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#columns = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#pairs = affine_map<(d0, d1, d2) -> (d0, d1)>

// What is summed over c has c as its outermost loop; the sum has its loops as they were.
// CHECK-DAG: #[[ROWS:.+]] = affine_map<(d0, d1, d2) -> (d1, 0, d0)>
// CHECK-DAG: #[[COLUMNS:.+]] = affine_map<(d0, d1, d2) -> (0, d2, d0)>
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[FIRST:.+]] = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
// CHECK-DAG: #[[PAIRS:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @distances(
// CHECK-SAME:      %[[X:.+]]: tensor<60x1x3xf32>, %[[Y:.+]]: tensor<1x50x3xf32>)
// CHECK:         %[[D:.+]] = linalg.generic {indexing_maps = [#[[ROWS]], #[[COLUMNS]], #[[ALL]]], {{.+}} ins(%[[X]], %[[Y]] : {{.+}}) outs(%{{.+}} : tensor<3x60x50xf32>)
// CHECK:         %[[S:.+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[ALL]]], {{.+}} ins(%[[D]], %[[D]] : {{.+}}) outs(%{{.+}} : tensor<3x60x50xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[FIRST]], #[[PAIRS]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[S]] : tensor<3x60x50xf32>) outs(%{{.+}} : tensor<60x50xf32>)
func.func @distances(%x: tensor<60x1x3xf32>, %y: tensor<1x50x3xf32>) -> tensor<60x50xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<60x50x3xf32>
  %d = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %y : tensor<60x1x3xf32>, tensor<1x50x3xf32>) outs(%e : tensor<60x50x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<60x50x3xf32>
  %s = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%d, %d : tensor<60x50x3xf32>, tensor<60x50x3xf32>) outs(%e : tensor<60x50x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<60x50x3xf32>
  %f = tensor.empty() : tensor<60x50xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<60x50xf32>) -> tensor<60x50xf32>
  %t = linalg.generic {indexing_maps = [#all, #pairs], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<60x50x3xf32>) outs(%i : tensor<60x50xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50xf32>
  return %t : tensor<60x50xf32>
}

// Another reader wants the differences in the order that they have.
// CHECK-LABEL: func.func @also_returned(
// CHECK-NOT:     tensor<3x60x50xf32>
// CHECK:         return
func.func @also_returned(%x: tensor<60x50x3xf32>) -> (tensor<60x50x3xf32>, tensor<60x50xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<60x50x3xf32>
  %d = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<60x50x3xf32>) outs(%e : tensor<60x50x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.absf %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50x3xf32>
  %f = tensor.empty() : tensor<60x50xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<60x50xf32>) -> tensor<60x50xf32>
  %t = linalg.generic {indexing_maps = [#all, #pairs], iterator_types = ["parallel", "parallel", "reduction"]} ins(%d : tensor<60x50x3xf32>) outs(%i : tensor<60x50xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50xf32>
  return %d, %t : tensor<60x50x3xf32>, tensor<60x50xf32>
}

// Nine elements fill a vector themselves.
// CHECK-LABEL: func.func @long(
// CHECK-NOT:     tensor<9x60x50xf32>
// CHECK:         return
func.func @long(%x: tensor<60x50x9xf32>) -> tensor<60x50xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<60x50x9xf32>
  %d = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<60x50x9xf32>) outs(%e : tensor<60x50x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.absf %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50x9xf32>
  %f = tensor.empty() : tensor<60x50xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<60x50xf32>) -> tensor<60x50xf32>
  %t = linalg.generic {indexing_maps = [#all, #pairs], iterator_types = ["parallel", "parallel", "reduction"]} ins(%d : tensor<60x50x9xf32>) outs(%i : tensor<60x50xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50xf32>
  return %t : tensor<60x50xf32>
}

// The number of a loop would be that of another one.
// CHECK-LABEL: func.func @numbered(
// CHECK-NOT:     tensor<3x60x50xf32>
// CHECK:         return
func.func @numbered() -> tensor<60x50xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<60x50x3xf32>
  %d = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<60x50x3xf32>) {
  ^bb0(%o: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %r = arith.sitofp %m : i32 to f32
    linalg.yield %r : f32
  } -> tensor<60x50x3xf32>
  %f = tensor.empty() : tensor<60x50xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<60x50xf32>) -> tensor<60x50xf32>
  %t = linalg.generic {indexing_maps = [#all, #pairs], iterator_types = ["parallel", "parallel", "reduction"]} ins(%d : tensor<60x50x3xf32>) outs(%i : tensor<60x50xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<60x50xf32>
  return %t : tensor<60x50xf32>
}
