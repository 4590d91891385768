// RUN: magweld-opt --hoist-pad-fill %s | filecheck %s

#id = affine_map<(c, w) -> (c, w)>

// What is around the copied part holds for all tiles.
// CHECK-LABEL: func.func @border(
// CHECK:         [[B:%.+]] = memref.alloc() : memref<4x12xf32>
// CHECK:         [[ZERO:%.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         linalg.generic {{.*}} outs([[B]] : memref<4x12xf32>) attrs =  {tile_graph.lasting} {
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      linalg.yield [[ZERO]]
// CHECK:         scf.for
// CHECK-NOT:       memref.alloc
// CHECK:           [[PART:%.+]] = memref.subview [[B]][0, 1] [4, 10] [1, 1]
// CHECK:           linalg.generic {{.*}} outs([[PART]]
// CHECK:           linalg.generic
// CHECK-NOT:       linalg.generic
// CHECK:         return
func.func @border(%x: memref<4x80xf32>, %y: memref<4x80xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  scf.for %t = %lo to %hi step %c1 {
    %zero = arith.constant 0.0 : f32
    %w = arith.muli %t, %c10 : index
    %from = memref.subview %x[0, %w] [4, 10] [1, 1] : memref<4x80xf32> to memref<4x10xf32, strided<[80, 1], offset: ?>>
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) attrs = {tile_graph.lasting} {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, 1] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: 1>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%from : memref<4x10xf32, strided<[80, 1], offset: ?>>) outs(%part : memref<4x10xf32, strided<[12, 1], offset: 1>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
    // Where the window begins may differ.
    %window = memref.subview %b[0, %t] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: ?>>
    %to = memref.subview %y[0, %w] [4, 10] [1, 1] : memref<4x80xf32> to memref<4x10xf32, strided<[80, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%window : memref<4x10xf32, strided<[12, 1], offset: ?>>) outs(%to : memref<4x10xf32, strided<[80, 1], offset: ?>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
  }
  return
}

// Another tile writes another part, which would be left over from this one.
// CHECK-LABEL: func.func @moving_part(
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK-COUNT-3:   linalg.generic
// CHECK:         return
func.func @moving_part(%x: memref<4x10xf32>, %y: memref<4x12xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %lo to %hi step %c1 {
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) attrs = {tile_graph.lasting} {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, %t] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x10xf32>) outs(%part : memref<4x10xf32, strided<[12, 1], offset: ?>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : memref<4x12xf32>) outs(%y : memref<4x12xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
  }
  return
}

// A sum goes on from what the fill wrote.
// CHECK-LABEL: func.func @sum(
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK-COUNT-3:   linalg.generic
// CHECK:         return
func.func @sum(%x: memref<4x12xf32>, %y: memref<4x12xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %lo to %hi step %c1 {
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) attrs = {tile_graph.lasting} {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, 0] [4, 12] [1, 1] : memref<4x12xf32> to memref<4x12xf32, strided<[12, 1]>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x12xf32>) outs(%part : memref<4x12xf32, strided<[12, 1]>>) {
    ^bb0(%v: f32, %o: f32):
      %0 = arith.addf %v, %o : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : memref<4x12xf32>) outs(%y : memref<4x12xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
  }
  return
}

// The border is written on later: it is no longer zero for the next tile.
// CHECK-LABEL: func.func @written_on(
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK-COUNT-3:   linalg.generic
// CHECK:         return
func.func @written_on(%x: memref<4x10xf32>, %y: memref<4x12xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %lo to %hi step %c1 {
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) attrs = {tile_graph.lasting} {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, 1] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: 1>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x10xf32>) outs(%part : memref<4x10xf32, strided<[12, 1], offset: 1>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : memref<4x12xf32>) outs(%b : memref<4x12xf32>) {
    ^bb0(%v: f32, %o: f32):
      %0 = arith.addf %v, %o : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// Tiles of two shapes: a call may have those of one alone.
// CHECK-LABEL: func.func @two_shapes(
// CHECK-COUNT-2: scf.for
// CHECK:           memref.alloc
// CHECK:           linalg.generic
// CHECK:         return
func.func @two_shapes(%x: memref<4x10xf32>, %y: memref<4x12xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %lo to %hi step %c1 {
    memref.store %zero, %y[%c1, %c1] : memref<4x12xf32>
  }
  scf.for %t = %lo to %hi step %c1 {
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) attrs = {tile_graph.lasting} {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, 1] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: 1>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x10xf32>) outs(%part : memref<4x10xf32, strided<[12, 1], offset: 1>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : memref<4x12xf32>) outs(%y : memref<4x12xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
  }
  return
}

// Others lie in the place of the window meanwhile: the plan does not say that it lasts.
// CHECK-LABEL: func.func @not_planned(
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK-COUNT-3:   linalg.generic
// CHECK:         return
func.func @not_planned(%x: memref<4x80xf32>, %y: memref<4x80xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  scf.for %t = %lo to %hi step %c1 {
    %zero = arith.constant 0.0 : f32
    %w = arith.muli %t, %c10 : index
    %from = memref.subview %x[0, %w] [4, 10] [1, 1] : memref<4x80xf32> to memref<4x10xf32, strided<[80, 1], offset: ?>>
    %b = memref.alloc() : memref<4x12xf32>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%b : memref<4x12xf32>) {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    }
    %part = memref.subview %b[0, 1] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: 1>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%from : memref<4x10xf32, strided<[80, 1], offset: ?>>) outs(%part : memref<4x10xf32, strided<[12, 1], offset: 1>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
    %window = memref.subview %b[0, %t] [4, 10] [1, 1] : memref<4x12xf32> to memref<4x10xf32, strided<[12, 1], offset: ?>>
    %to = memref.subview %y[0, %w] [4, 10] [1, 1] : memref<4x80xf32> to memref<4x10xf32, strided<[80, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%window : memref<4x10xf32, strided<[12, 1], offset: ?>>) outs(%to : memref<4x10xf32, strided<[80, 1], offset: ?>>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    }
  }
  return
}
