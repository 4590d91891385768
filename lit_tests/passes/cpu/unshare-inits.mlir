// RUN: magweld-opt --unshare-inits %s | filecheck %s
// RUN: magweld-opt --unshare-inits --one-shot-bufferize %s | filecheck %s --check-prefix=BUFFER
// RUN: magweld-opt --unshare-inits --canonicalize --cse --one-shot-bufferize %s \
// RUN:   | filecheck %s --check-prefix=BUFFER
// RUN: magweld-opt %s --pass-pipeline='builtin.module(unshare-inits, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries=1 \
// RUN:     function-boundary-type-conversion=identity-layout-map}, expand-winograd)' \
// RUN:   | filecheck %s --check-prefix=TILES

#id = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>

// Each sum begins from zeros of its own, and none from a copy of them.
// CHECK-LABEL: func.func @two_sums(
// CHECK:         [[A:%.+]] = tensor.empty() : tensor<f32>
// CHECK:         [[ZERO:%.+]] = linalg.generic {{.*}} outs([[A]] : tensor<f32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.+}} : tensor<8xf32>) outs([[ZERO]] : tensor<f32>)
// CHECK:         [[B:%.+]] = tensor.empty() {tile_graph.unshared = 0 : i64} : tensor<f32>
// CHECK:         [[OTHER:%.+]] = linalg.generic {{.*}} outs([[B]] : tensor<f32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.+}} : tensor<8xf32>) outs([[OTHER]] : tensor<f32>)
// BUFFER-LABEL: func.func @two_sums(
// BUFFER-COUNT-2: memref.alloc
// BUFFER-NOT:   memref.copy
// BUFFER:       return
func.func @two_sums(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
    attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %start = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []}
      outs(%empty : tensor<f32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<f32>
  %a = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  %b = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%y : tensor<8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// One user goes on from the fill itself.
// CHECK-LABEL: func.func @one_sum(
// CHECK-COUNT-1: tensor.empty
// CHECK-NOT:     tensor.empty
// CHECK:         return
func.func @one_sum(%x: tensor<8xf32>) -> tensor<f32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %start = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []}
      outs(%empty : tensor<f32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<f32>
  %a = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %a : tensor<f32>
}

// What is written over something else than a new tensor is no fill to repeat.
// CHECK-LABEL: func.func @of_an_argument(
// CHECK-COUNT-1: linalg.yield %cst
// CHECK-NOT:     linalg.yield %cst
// CHECK:         return
func.func @of_an_argument(%x: tensor<8xf32>, %out: tensor<f32>)
    -> (tensor<f32>, tensor<f32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []}
      outs(%out : tensor<f32>) {
  ^bb0(%old: f32):
    linalg.yield %zero : f32
  } -> tensor<f32>
  %a = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %old: f32):
    %sum = arith.addf %in, %old : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %start, %a : tensor<f32>, tensor<f32>
}

// Two windows begin from the same zeros: the first is still known to begin from zero.
// TILES-LABEL: func.func @two_windows(
// TILES-NOT:     no Winograd
// TILES:         memref.reinterpret_cast {{.*}} sizes: [16, 8, 1, 2, 2]
func.func @two_windows(%x: tensor<1x8x6x6xf32>, %w: tensor<16x8x3x3xf32>,
                       %v: tensor<16x8x3x3xf32>)
    -> (tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x16x4x4xf32>
  %start = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%empty : tensor<1x16x4x4xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<1x16x4x4xf32>
  %a = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64}
      ins(%x, %w : tensor<1x8x6x6xf32>, tensor<16x8x3x3xf32>)
      outs(%start : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %b = linalg.conv_2d_nchw_fchw ins(%x, %v : tensor<1x8x6x6xf32>, tensor<16x8x3x3xf32>)
      outs(%start : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  return %a, %b : tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>
}

// So do products, whose zeros have a name of their own.
// CHECK-LABEL: func.func @two_products(
// CHECK:         [[A:%.+]] = tensor.empty() : tensor<4x4xf32>
// CHECK:         [[ZERO:%.+]] = linalg.fill ins(%{{.+}}) outs([[A]] : tensor<4x4xf32>)
// CHECK:         linalg.matmul ins(%{{.+}}) outs([[ZERO]] : tensor<4x4xf32>)
// CHECK:         [[B:%.+]] = tensor.empty() {tile_graph.unshared = {{.+}}} : tensor<4x4xf32>
// CHECK:         [[OTHER:%.+]] = linalg.fill {{{.*}}tile_graph.unshared = {{.+}}} ins(%{{.+}}) outs([[B]] : tensor<4x4xf32>)
// CHECK:         linalg.matmul ins(%{{.+}}) outs([[OTHER]] : tensor<4x4xf32>)
// BUFFER-LABEL: func.func @two_products(
// BUFFER-NOT:   memref.copy
// BUFFER:       return
func.func @two_products(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = linalg.matmul ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%start : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%a, %y : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%start : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}
