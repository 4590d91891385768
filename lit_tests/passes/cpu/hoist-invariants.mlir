// RUN: magweld-opt --hoist-invariants %s | filecheck %s

#image = affine_map<(c, p) -> (c, p)>
#channel = affine_map<(c, p) -> (c)>
#pixel = affine_map<(c, p) -> (p)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A norm behind a product: a factor and a term for each channel come before, and what
// is left is arithmetic.
//
// CHECK-LABEL: func.func @norm(
// CHECK-SAME:      %{{.+}}: memref<32x16xf32>, %{{.+}}: memref<16x64xf32>, %[[V:.+]]: memref<32xf32>, %[[M:.+]]: memref<32xf32>, %[[Y:.+]]: memref<32x64xf32>)
// CHECK:         %[[T:.+]] = memref.alloc()
// CHECK:         linalg.generic {{.+}} outs(%[[T]] :
// CHECK:         %[[F:.+]] = memref.alloc() {alignment = 64 : i64} : memref<32xf32>
// CHECK:         %[[B:.+]] = memref.alloc() {alignment = 64 : i64} : memref<32xf32>
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel"]} ins(%[[V]], %[[M]] : {{.+}}) outs(%[[F]], %[[B]] :
// CHECK:           %[[R:.+]] = math.rsqrt
// CHECK:           %[[P:.+]] = arith.mulf %{{.+}}, %[[R]]
// CHECK:           linalg.yield %[[R]], %[[P]]
// CHECK:         linalg.generic {{.+}} ins(%[[T]], %[[F]], %[[B]] : {{.+}}) outs(%[[Y]] :
// CHECK-NOT:       math.
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.subf
// CHECK-NEXT:      linalg.yield
func.func @norm(%x: memref<32x16xf32>, %w: memref<16x64xf32>, %v: memref<32xf32>, %m: memref<32xf32>, %y: memref<32x64xf32>) attributes {tile_graph.kernel} {
  %t = memref.alloc() {alignment = 64 : i64} : memref<32x64xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<32x16xf32>, memref<16x64xf32>) outs(%t : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#image, #channel, #channel, #image], iterator_types = ["parallel", "parallel"]} ins(%t, %v, %m : memref<32x64xf32>, memref<32xf32>, memref<32xf32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%p: f32, %variance: f32, %mean: f32, %u: f32):
    %0 = math.rsqrt %variance : f32
    %1 = arith.mulf %p, %0 : f32
    %2 = arith.mulf %mean, %0 : f32
    %3 = arith.subf %1, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Left alone: no product makes what it reads.
//
// CHECK-LABEL: func.func @no_product(
// CHECK-NOT:     memref.alloc
func.func @no_product(%x: memref<32x64xf32>, %v: memref<32xf32>, %y: memref<32x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel"]} ins(%x, %v : memref<32x64xf32>, memref<32xf32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%p: f32, %variance: f32, %u: f32):
    %0 = math.rsqrt %variance : f32
    %1 = arith.mulf %p, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: arithmetic costs no more than to read what it makes.
//
// CHECK-LABEL: func.func @arithmetic(
// CHECK-COUNT-1: memref.alloc
// CHECK-NOT:     memref.alloc
func.func @arithmetic(%x: memref<4x16xf32>, %w: memref<16x64xf32>, %v: memref<4xf32>, %y: memref<4x64xf32>) attributes {tile_graph.kernel} {
  %t = memref.alloc() {alignment = 64 : i64} : memref<4x64xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x16xf32>, memref<16x64xf32>) outs(%t : memref<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel"]} ins(%t, %v : memref<4x64xf32>, memref<4xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.addf %q, %q : f32
    %1 = arith.mulf %p, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: a function of each element.
//
// CHECK-LABEL: func.func @each_element(
// CHECK-COUNT-1: memref.alloc
// CHECK-NOT:     memref.alloc
func.func @each_element(%x: memref<4x16xf32>, %w: memref<16x64xf32>, %y: memref<4x64xf32>) attributes {tile_graph.kernel} {
  %t = memref.alloc() {alignment = 64 : i64} : memref<4x64xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x16xf32>, memref<16x64xf32>) outs(%t : memref<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel"]} ins(%t : memref<4x64xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  }
  return
}

// Left alone: what a column takes would be read four times.
//
// CHECK-LABEL: func.func @few_rows(
// CHECK-COUNT-1: memref.alloc
// CHECK-NOT:     memref.alloc
func.func @few_rows(%x: memref<4x16xf32>, %w: memref<16x64xf32>, %b: memref<64xf32>, %y: memref<4x64xf32>) attributes {tile_graph.kernel} {
  %t = memref.alloc() {alignment = 64 : i64} : memref<4x64xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x16xf32>, memref<16x64xf32>) outs(%t : memref<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#image, #pixel, #image], iterator_types = ["parallel", "parallel"]} ins(%t, %b : memref<4x64xf32>, memref<64xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = math.exp %q : f32
    %1 = arith.mulf %p, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
