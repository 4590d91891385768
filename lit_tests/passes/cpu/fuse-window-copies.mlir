// RUN: magweld-opt --fuse-window-copies %s | filecheck %s

#all = affine_map<(c, y, x) -> (c, y, x)>
#channel = affine_map<(c, y, x) -> (c)>
#image = affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>
#weight = affine_map<(c, y, x, i, j) -> (c, i, j)>
#result = affine_map<(c, y, x, i, j) -> (c, y, x)>
#every = affine_map<(f, y, x, c, i, j) -> (c, y + i, x + j)>
#filter = affine_map<(f, y, x, c, i, j) -> (f, c, i, j)>
#sum = affine_map<(f, y, x, c, i, j) -> (f, y, x)>

// A channel with its border takes 10 * 58 * 4 bytes: three of 24 are copied at a time,
// what is made of them follows, and the next three are fetched.
//
// CHECK-LABEL: func.func @border(
// CHECK-SAME:      %[[X:.+]]: memref<24x56x56xf32>, %[[W:.+]]: memref<24x3x3xf32>, %[[S:.+]]: memref<24xf32>, %[[Y:.+]]: memref<24x56x56xf32>
// CHECK:         %[[B:.+]] = memref.alloc() {alignment = 64 : i64} : memref<3x10x58xf32>
// CHECK:         linalg.generic {{.+}} outs(%[[B]] :
// CHECK:         %[[FROM:.+]] = memref.subview %[[X]]
// CHECK:         %[[T:.+]] = memref.alloc() : memref<24x8x56xf32>
// CHECK:         scf.for %[[C:.+]] = %{{.+}} to %{{.+}} step %{{.+}} {
// CHECK:           memref.prefetch %[[FROM]][{{.+}}], read, locality<3>, data
// CHECK:           %[[PART:.+]] = memref.subview %[[FROM]][%[[C]], 0, 0] [3, 8, 56] [1, 1, 1]
// CHECK:           %[[INSIDE:.+]] = memref.subview %[[B]][0, 1, 1] [3, 8, 56] [1, 1, 1]
// CHECK:           linalg.generic {{.+}} ins(%[[PART]] : {{.+}}) outs(%[[INSIDE]] :
// CHECK:           %[[SUM:.+]] = memref.subview %[[T]][%[[C]], 0, 0] [3, 8, 56] [1, 1, 1]
// CHECK:           linalg.generic {{.+}} outs(%[[SUM]] : {{.+}}) attrs = {magweld.sweep = 0 : i64}
// CHECK:           %[[WEIGHT:.+]] = memref.subview %[[W]][%[[C]], 0, 0] [3, 3, 3] [1, 1, 1]
// CHECK:           linalg.generic {{.+}} ins(%[[B]], %[[WEIGHT]] : {{.+}}) outs(%[[SUM]] :
// CHECK:           %[[FACTOR:.+]] = memref.subview %[[S]][%[[C]]] [3] [1]
// CHECK:           linalg.generic {{.+}} ins(%[[SUM]], %[[FACTOR]] :
// CHECK:         }
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @border(%x: memref<24x56x56xf32>, %w: memref<24x3x3xf32>, %s: memref<24xf32>, %y: memref<24x56x56xf32>, %row: index) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<24x10x58xf32>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%b : memref<24x10x58xf32>) attrs = {tile_graph.lasting} {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  }
  %from = memref.subview %x[0, %row, 0] [24, 8, 56] [1, 1, 1] : memref<24x56x56xf32> to memref<24x8x56xf32, strided<[3136, 56, 1], offset: ?>>
  %inside = memref.subview %b[0, 1, 1] [24, 8, 56] [1, 1, 1] : memref<24x10x58xf32> to memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%from : memref<24x8x56xf32, strided<[3136, 56, 1], offset: ?>>) outs(%inside : memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  %t = memref.alloc() : memref<24x8x56xf32>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%t : memref<24x8x56xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%b, %w : memref<24x10x58xf32>, memref<24x3x3xf32>) outs(%t : memref<24x8x56xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  %to = memref.subview %y[0, %row, 0] [24, 8, 56] [1, 1, 1] : memref<24x56x56xf32> to memref<24x8x56xf32, strided<[3136, 56, 1], offset: ?>>
  linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%t, %s : memref<24x8x56xf32>, memref<24xf32>) outs(%to : memref<24x8x56xf32, strided<[3136, 56, 1], offset: ?>>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  }
  return
}

// Left alone: all channels are summed up, so each result needs the whole image.
//
// CHECK-LABEL: func.func @sum(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @sum(%x: memref<24x8x56xf32>, %w: memref<16x24x3x3xf32>, %y: memref<16x8x56xf32>) attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<24x10x58xf32>
  %inside = memref.subview %b[0, 1, 1] [24, 8, 56] [1, 1, 1] : memref<24x10x58xf32> to memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<24x8x56xf32>) outs(%inside : memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#every, #filter, #sum], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%b, %w : memref<24x10x58xf32>, memref<16x24x3x3xf32>) outs(%y : memref<16x8x56xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: what is copied is written between the copy and the window.
//
// CHECK-LABEL: func.func @written(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @written(%x: memref<24x8x56xf32>, %w: memref<24x3x3xf32>, %y: memref<24x8x56xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<24x10x58xf32>
  %inside = memref.subview %b[0, 1, 1] [24, 8, 56] [1, 1, 1] : memref<24x10x58xf32> to memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<24x8x56xf32>) outs(%inside : memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%x : memref<24x8x56xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%b, %w : memref<24x10x58xf32>, memref<24x3x3xf32>) outs(%y : memref<24x8x56xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: another operation reads the copy as well.
//
// CHECK-LABEL: func.func @read_again(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @read_again(%x: memref<24x8x56xf32>, %w: memref<24x3x3xf32>, %y: memref<24x8x56xf32>, %z: memref<24x10x58xf32>) attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<24x10x58xf32>
  %inside = memref.subview %b[0, 1, 1] [24, 8, 56] [1, 1, 1] : memref<24x10x58xf32> to memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<24x8x56xf32>) outs(%inside : memref<24x8x56xf32, strided<[580, 58, 1], offset: 59>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%b, %w : memref<24x10x58xf32>, memref<24x3x3xf32>) outs(%y : memref<24x8x56xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : memref<24x10x58xf32>) outs(%z : memref<24x10x58xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  return
}

// Left alone: the first cache holds the copy.
//
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @small(%x: memref<24x8x8xf32>, %w: memref<24x3x3xf32>, %y: memref<24x8x8xf32>) attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<24x10x10xf32>
  %inside = memref.subview %b[0, 1, 1] [24, 8, 8] [1, 1, 1] : memref<24x10x10xf32> to memref<24x8x8xf32, strided<[100, 10, 1], offset: 11>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<24x8x8xf32>) outs(%inside : memref<24x8x8xf32, strided<[100, 10, 1], offset: 11>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%b, %w : memref<24x10x10xf32>, memref<24x3x3xf32>) outs(%y : memref<24x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: channels lie behind the image, one by one.
//
// CHECK-LABEL: func.func @channels_last(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @channels_last(%x: memref<8x56x24xf32>, %w: memref<24x3x3xf32>, %y: memref<8x56x24xf32>) attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<10x58x24xf32>
  %inside = memref.subview %b[1, 1, 0] [8, 56, 24] [1, 1, 1] : memref<10x58x24xf32> to memref<8x56x24xf32, strided<[1392, 24, 1], offset: 1416>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<8x56x24xf32>) outs(%inside : memref<8x56x24xf32, strided<[1392, 24, 1], offset: 1416>>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, c, p, q) -> (i + p, j + q, c)>, affine_map<(i, j, c, p, q) -> (c, p, q)>, affine_map<(i, j, c, p, q) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%b, %w : memref<10x58x24xf32>, memref<24x3x3xf32>) outs(%y : memref<8x56x24xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: no window, a product by elements in other places.
//
// CHECK-LABEL: func.func @no_window(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @no_window(%x: memref<24x8x56xf32>, %w: memref<24xf32>, %y: memref<24x8x56xf32>) attributes {tile_graph.kernel} {
  %b = memref.alloc() : memref<24x8x56xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<24x8x56xf32>) outs(%b : memref<24x8x56xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b, %w : memref<24x8x56xf32>, memref<24xf32>) outs(%y : memref<24x8x56xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  }
  return
}
