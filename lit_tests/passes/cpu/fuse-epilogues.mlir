// RUN: magweld-opt --fuse-epilogues %s | filecheck %s
// RUN: magweld-opt --fuse-epilogues --tile-for-registers --vectorize --canonicalize --cse %s | filecheck --check-prefix=CODE %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
#column = affine_map<(m, n) -> (n)>

// Zeros, sums and what is made of them: nothing but the end is stored, nothing of it is
// loaded before.
//
// CHECK-LABEL: func.func @product(
// CHECK-COUNT-3: magweld.sweep = 0 : i64
// CODE-LABEL:  func.func @product(
// CODE-NOT:      memref.alloc
// CODE:          %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CODE-NOT:      vector.store
// CODE:          scf.for {{.+}} iter_args(%{{.+}} = %[[ZERO]]
// CODE:            scf.yield
// CODE:          vector.load %arg2
// CODE:          arith.addf
// CODE:          arith.maximumf
// CODE-NEXT:     vector.store
// CODE:          return
func.func @product(%a: memref<6x32xf32>, %b: memref<32x64xf32>, %c: memref<64xf32>, %z: memref<6x64xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %y = memref.alloc() : memref<6x64xf32>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%y : memref<6x64xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<6x32xf32>, memref<32x64xf32>) outs(%y : memref<6x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %c : memref<6x64xf32>, memref<64xf32>) outs(%z : memref<6x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  }
  return
}

// Sums that go into a result for others as well are stored, beside what is made of them.
//
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-COUNT-2: magweld.sweep = 0 : i64
// CODE-LABEL:  func.func @read_elsewhere(
// CODE:          %[[SUMS:.+]]:16 = scf.for
// CODE:          %[[TWICE:.+]] = arith.addf %[[SUMS]]#0, %[[SUMS]]#0
// CODE-NEXT:     vector.store %[[TWICE]],
// CODE-NEXT:     vector.store %[[SUMS]]#0,
// CODE:          return
func.func @read_elsewhere(%a: memref<16x16xf32>, %y: memref<16x16xf32>, %z: memref<16x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// Apart: what would be written is read by sums that are made later, the end reads a second
// sum for each element, it turns the rows of lanes into columns, or what it would write is
// loaded by the body of the sums.
//
// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     magweld.sweep
// CHECK:         return
func.func @apart(%a: memref<16x16xf32>, %y: memref<16x16xf32>, %z: memref<16x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%z, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #turned, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %y : memref<16x16xf32>, memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]} ins(%y : memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#a, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    %k = linalg.index 2 : index
    %n = linalg.index 1 : index
    %0 = memref.load %z[%k, %n] : memref<16x16xf32>
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// The fill is outside of the loop that the sums are in, or something between the two
// writes a part of what was filled.
//
// CHECK-LABEL: func.func @filled_elsewhere(
// CHECK-NOT:     magweld.sweep
// CHECK:         return
func.func @filled_elsewhere(%a: memref<16x16xf32>, %y: memref<16x16xf32>, %z: memref<16x16xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%y : memref<16x16xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  scf.for %i = %c0 to %c2 step %c1 {
    linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %u, %0 : f32
      linalg.yield %1 : f32
    }
  }
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%z : memref<16x16xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %one, %z[%i, %i] : memref<16x16xf32>
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%z : memref<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
