// RUN: magweld-opt --linearize-conv-rows --canonicalize %s | filecheck %s

#all = affine_map<(c, h, w) -> (c, h, w)>
#image = affine_map<(c, h, w, i, j) -> (c, h + i, w + j)>
#step = affine_map<(c, h, w, i, j) -> (c, h * 2 + i, w * 2 + j)>
#weight = affine_map<(c, h, w, i, j) -> (c, i, j)>
#result = affine_map<(c, h, w, i, j) -> (c, h, w)>

// Rows of 19 in an image whose rows are 23 apart: 157 elements from the first to the
// last. What replaces the result in its place reads them where they are.
//
// CHECK-DAG:   #[[LONG:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 + d2 * 23 + d3)>
// CHECK-DAG:   #[[ROW:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-LABEL: func.func @short_rows(
// CHECK-SAME:      %[[X:.+]]: memref<24x11x23xf32>, %[[K:.+]]: memref<24x5x5xf32>, %[[Y:.+]]: memref<24x7x19xf32>)
// CHECK:         %[[P:.+]] = memref.alloc() {alignment = 64 : i64} : memref<24x157xf32>
// CHECK-NEXT:    linalg.generic {{.+}} outs(%[[P]] : memref<24x157xf32>)
// CHECK:         %[[FLAT:.+]] = memref.reinterpret_cast %{{.+}} to offset: [{{.+}}], sizes: [24, 253], strides: [253, 1]
// CHECK-NEXT:    linalg.generic {indexing_maps = [#[[LONG]], #{{.+}}, #[[ROW]]], {{.+}}} ins(%[[FLAT]], %[[K]] :
// CHECK-SAME:        outs(%[[P]] : memref<24x157xf32>)
// CHECK:         %[[ROWS:.+]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [24, 7, 19], strides: [157, 23, 1]
// CHECK-NEXT:    linalg.generic {{.+}} ins(%[[ROWS]] :
// CHECK-SAME:        outs(%[[Y]] :
func.func @short_rows(%x: memref<24x11x23xf32>, %k: memref<24x5x5xf32>, %y: memref<24x7x19xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<24x7x19xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<24x11x23xf32>, memref<24x5x5xf32>) outs(%y : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : memref<24x7x19xf32>) outs(%y : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.maximumf %p, %zero : f32
    linalg.yield %0 : f32
  }
  return
}

// Nobody reads the result here: it is copied to its place.
//
// CHECK-LABEL: func.func @result(
// CHECK:         %[[ROWS:.+]] = memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [24, 7, 19]
// CHECK-NEXT:    memref.copy %[[ROWS]], %arg2
func.func @result(%x: memref<24x11x23xf32>, %k: memref<24x5x5xf32>, %y: memref<24x7x19xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<24x7x19xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<24x11x23xf32>, memref<24x5x5xf32>) outs(%y : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Somebody reads it, but it is what the kernel was given to write, too.
//
// CHECK-LABEL: func.func @result_and_its_reader(
// CHECK:         %[[ROWS:.+]] = memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [24, 7, 19]
// CHECK-NEXT:    memref.copy %[[ROWS]], %arg2
// CHECK-NEXT:    linalg.generic {{.+}} ins(%arg2 :
func.func @result_and_its_reader(%x: memref<24x11x23xf32>, %k: memref<24x5x5xf32>, %y: memref<24x7x19xf32>, %z: memref<24x7x19xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<24x7x19xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<24x11x23xf32>, memref<24x5x5xf32>) outs(%y : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : memref<24x7x19xf32>) outs(%z : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.maximumf %p, %zero : f32
    linalg.yield %0 : f32
  }
  return
}

// Left alone: rows that fill their vectors, and a window that moves two steps at a time.
//
// CHECK-LABEL: func.func @whole_vectors(
// CHECK-NOT:     memref.alloc
func.func @whole_vectors(%x: memref<24x10x66xf32>, %k: memref<24x3x3xf32>, %y: memref<24x8x64xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<24x8x64xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<24x10x66xf32>, memref<24x3x3xf32>) outs(%y : memref<24x8x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @two_steps(
// CHECK-NOT:     memref.alloc
func.func @two_steps(%x: memref<24x15x39xf32>, %k: memref<24x3x3xf32>, %y: memref<24x7x19xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%y : memref<24x7x19xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#step, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<24x15x39xf32>, memref<24x3x3xf32>) outs(%y : memref<24x7x19xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
