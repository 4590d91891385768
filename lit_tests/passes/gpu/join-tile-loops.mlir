// RUN: magweld-opt --split-input-file --join-tile-loops %s | filecheck %s

#x = affine_map<(n, f, y, x, c) -> (n, c, y, x)>
#w = affine_map<(n, f, y, x, c) -> (f, c)>
#o = affine_map<(n, f, y, x, c) -> (n, f, y, x)>
#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
#row = affine_map<(n, f, y, x) -> (f)>

// Whole rows of pixels are one loop of the product and of what follows element by
// element; nothing is left of the views between them.
// CHECK-DAG: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[WEIGHTS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[PIXELS:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[BIAS:.+]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<1x16x8x6xf16>, %[[W:[a-z0-9]+]]: tensor<32x16xf16>, %[[B:[a-z0-9]+]]: tensor<32xf32>
// CHECK:           %[[T:.+]] = tensor.extract_slice %[[X]]
// CHECK-DAG:       %[[J:.+]] = tensor.collapse_shape %[[T]] {{\[}}[0], [1], [2, 3]] : tensor<1x16x4x6xf16> into tensor<1x16x24xf16>
// CHECK-DAG:       %[[E:.+]] = tensor.empty() : tensor<1x32x24xf32>
// CHECK:           %[[F:.+]] = linalg.fill ins(%{{.+}}) outs(%[[E]] :
// CHECK:           %[[P:.+]] = linalg.contract indexing_maps = [#[[IMAGE]], #[[WEIGHTS]], #[[RESULT]]] ins(%[[J]], %[[W]] : tensor<1x16x24xf16>, tensor<32x16xf16>) outs(%[[F]] : tensor<1x32x24xf32>)
// CHECK-NOT:       tensor.expand_shape
// CHECK:           %[[D:.+]] = tensor.collapse_shape %{{.+}} {{\[}}[0], [1], [2, 3]] : tensor<1x32x4x6xf32>
// CHECK:           %[[R:.+]] = linalg.generic {indexing_maps = [#[[PIXELS]], #[[BIAS]], #[[PIXELS]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[P]], %[[B]] : tensor<1x32x24xf32>, tensor<32xf32>) outs(%[[D]] : tensor<1x32x24xf32>)
// CHECK:           %[[V:.+]] = tensor.expand_shape %[[R]]
// CHECK:             tensor.parallel_insert_slice %[[V]] into
func.func @rows(%x: tensor<1x16x8x6xf16>, %w: tensor<32x16xf16>, %b: tensor<32xf32>, %out: tensor<1x32x8x6xf32>) -> tensor<1x32x8x6xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (8) step (4) shared_outs(%o = %out) -> (tensor<1x32x8x6xf32>) {
    %t = tensor.extract_slice %x[0, 0, %i, 0] [1, 16, 4, 6] [1, 1, 1, 1] : tensor<1x16x8x6xf16> to tensor<1x16x4x6xf16>
    %e = tensor.empty() : tensor<1x32x4x6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
    %p = linalg.contract indexing_maps = [#x, #w, #o] ins(%t, %w : tensor<1x16x4x6xf16>, tensor<32x16xf16>) outs(%f : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
    %d = tensor.extract_slice %o[0, 0, %i, 0] [1, 32, 4, 6] [1, 1, 1, 1] : tensor<1x32x8x6xf32> to tensor<1x32x4x6xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p, %b : tensor<1x32x4x6xf32>, tensor<32xf32>) outs(%d : tensor<1x32x4x6xf32>) {
    ^bb0(%a: f32, %c: f32, %old: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
    } -> tensor<1x32x4x6xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, %i, 0] [1, 32, 4, 6] [1, 1, 1, 1] : tensor<1x32x4x6xf32> into tensor<1x32x8x6xf32>
    }
  }
  return %r : tensor<1x32x8x6xf32>
}

// -----

#x = affine_map<(n, f, y, x, c) -> (n, c, y, x)>
#w = affine_map<(n, f, y, x, c) -> (f, c)>
#o = affine_map<(n, f, y, x, c) -> (n, f, y, x)>

// A part of each row is none in memory.
// CHECK-LABEL: func.func @parts_of_rows(
// CHECK-NOT:     tensor.collapse_shape
// CHECK:         return
func.func @parts_of_rows(%x: tensor<1x16x8x6xf16>, %w: tensor<32x16xf16>, %out: tensor<1x32x8x6xf32>) -> tensor<1x32x8x6xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%i) = (0) to (6) step (2) shared_outs(%o = %out) -> (tensor<1x32x8x6xf32>) {
    %t = tensor.extract_slice %x[0, 0, 0, %i] [1, 16, 8, 2] [1, 1, 1, 1] : tensor<1x16x8x6xf16> to tensor<1x16x8x2xf16>
    %d = tensor.extract_slice %o[0, 0, 0, %i] [1, 32, 8, 2] [1, 1, 1, 1] : tensor<1x32x8x6xf32> to tensor<1x32x8x2xf32>
    %p = linalg.contract indexing_maps = [#x, #w, #o] ins(%t, %w : tensor<1x16x8x2xf16>, tensor<32x16xf16>) outs(%d : tensor<1x32x8x2xf32>) -> tensor<1x32x8x2xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0, 0, %i] [1, 32, 8, 2] [1, 1, 1, 1] : tensor<1x32x8x2xf32> into tensor<1x32x8x6xf32>
    }
  }
  return %r : tensor<1x32x8x6xf32>
}

// -----

#x = affine_map<(n, f, y, x, c) -> (n, c, y, x)>
#w = affine_map<(n, f, y, x, c) -> (f, c)>
#o = affine_map<(n, f, y, x, c) -> (n, f, y, x)>
#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
#turned = affine_map<(n, f, y, x) -> (n, f, x, y)>

// What follows would read columns.
// CHECK-LABEL: func.func @turned(
// CHECK-NOT:     tensor.collapse_shape
// CHECK:         return
func.func @turned(%x: tensor<1x16x6x6xf16>, %w: tensor<32x16xf16>, %out: tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<1x32x6x6xf32>) {
    %e = tensor.empty() : tensor<1x32x6x6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
    %p = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<1x16x6x6xf16>, tensor<32x16xf16>) outs(%f : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
    %y = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<1x32x6x6xf32>) outs(%o : tensor<1x32x6x6xf32>) {
    ^bb0(%a: f32, %old: f32):
      %s = arith.negf %a : f32
      linalg.yield %s : f32
    } -> tensor<1x32x6x6xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 32, 6, 6] [1, 1, 1, 1] : tensor<1x32x6x6xf32> into tensor<1x32x6x6xf32>
    }
  }
  return %r : tensor<1x32x6x6xf32>
}

// -----

#x = affine_map<(n, f, y, x, c) -> (n, c, y, x)>
#w = affine_map<(n, f, y, x, c) -> (f, c)>
#o = affine_map<(n, f, y, x, c) -> (n, f, y, x)>
#window = affine_map<(f, y, i) -> (0, f, y, i)>
#sum = affine_map<(f, y, i) -> (f, y)>

// Who reads rows by themselves sees the result as it was.
// CHECK-LABEL: func.func @sums_of_rows(
// CHECK:         %[[P:.+]] = linalg.contract {{.+}} -> tensor<1x32x24xf32>
// CHECK:         %[[V:.+]] = tensor.expand_shape %[[P]] {{\[}}[0], [1], [2, 3]] output_shape [1, 32, 4, 6]
// CHECK:         linalg.generic {{.+}} ins(%[[V]] : tensor<1x32x4x6xf32>)
func.func @sums_of_rows(%x: tensor<1x16x4x6xf16>, %w: tensor<32x16xf16>, %out: tensor<32x4xf32>) -> tensor<32x4xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<32x4xf32>) {
    %e = tensor.empty() : tensor<1x32x4x6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
    %p = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<1x16x4x6xf16>, tensor<32x16xf16>) outs(%f : tensor<1x32x4x6xf32>) -> tensor<1x32x4x6xf32>
    %g = linalg.fill ins(%zero : f32) outs(%o : tensor<32x4xf32>) -> tensor<32x4xf32>
    %y = linalg.generic {indexing_maps = [#window, #sum], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p : tensor<1x32x4x6xf32>) outs(%g : tensor<32x4xf32>) {
    ^bb0(%a: f32, %old: f32):
      %s = arith.addf %a, %old : f32
      linalg.yield %s : f32
    } -> tensor<32x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [32, 4] [1, 1] : tensor<32x4xf32> into tensor<32x4xf32>
    }
  }
  return %r : tensor<32x4xf32>
}
