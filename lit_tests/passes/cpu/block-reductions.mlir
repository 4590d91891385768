// RUN: magweld-opt --block-reductions --canonicalize %s | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#shifted = affine_map<(m, n, k) -> (m + k)>

// The plan says 160 iterations a block: the last of four has 120. The result is read and written by each of them whole.
//
// CHECK-LABEL: func.func @long(
// CHECK-SAME:      %[[A:.+]]: memref<32x600xf32>, %[[B:.+]]: memref<64x600xf32, strided<[600, 1], offset: ?>>, %[[Y:.+]]: memref<32x64xf32>)
// CHECK-DAG:     %[[STEP:.+]] = arith.constant 160 : index
// CHECK-DAG:     %[[END:.+]] = arith.constant 480 : index
// CHECK:         scf.for %[[K:.+]] = %{{.+}} to %[[END]] step %[[STEP]] {
// CHECK-NEXT:      %[[AK:.+]] = memref.subview %[[A]][0, %[[K]]] [32, 160] [1, 1]
// CHECK-NEXT:      %[[BK:.+]] = memref.subview %[[B]][0, %[[K]]] [64, 160] [1, 1]
// CHECK-NEXT:      linalg.generic {{.+}} ins(%[[AK]], %[[BK]] : {{.+}}) outs(%[[Y]] :
// CHECK:         memref.subview %[[A]][0, 480] [32, 120] [1, 1]
// CHECK-NEXT:    memref.subview %[[B]][0, 480] [64, 120] [1, 1]
// CHECK-NEXT:    linalg.generic {{.+}} outs(%[[Y]] :
func.func @long(%a: memref<32x600xf32>, %b: memref<64x600xf32, strided<[600, 1], offset: ?>>, %y: memref<32x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"], tile_graph.reduction_block = 160 : i64} ins(%a, %b : memref<32x600xf32>, memref<64x600xf32, strided<[600, 1], offset: ?>>) outs(%y : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left whole, with a remark: sums that would be rounded between two blocks, a reduction
// that is no index of its own, and what is no product. What the plan names no blocks for,
// or blocks as long as it is, stays without one.
//
// CHECK-LABEL: func.func @others(
// CHECK-SAME:      magweld.remarks = ["no blocks of 160 iterations: no such product", "no blocks of 16 iterations: no such product", "no blocks of 32 iterations: no such product"]
// CHECK-NOT:     scf.for
// CHECK-NOT:     reduction_block
// CHECK:         return
func.func @others(%a: memref<32x600xf16>, %b: memref<64x600xf16>, %y: memref<32x64xf16>,
                  %e: memref<631xf32>, %d: memref<64x600xf32>, %w: memref<32x64xf32>,
                  %f: memref<32x600xf32>, %v: memref<32xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"], tile_graph.reduction_block = 160 : i64} ins(%a, %b : memref<32x600xf16>, memref<64x600xf16>) outs(%y : memref<32x64xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %0 = arith.mulf %p, %q : f16
    %1 = arith.addf %u, %0 : f16
    linalg.yield %1 : f16
  }
  linalg.generic {indexing_maps = [#shifted, #b, #y], iterator_types = ["parallel", "parallel", "reduction"], tile_graph.reduction_block = 16 : i64} ins(%e, %d : memref<631xf32>, memref<64x600xf32>) outs(%w : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"], tile_graph.reduction_block = 32 : i64} ins(%f : memref<32x600xf32>) outs(%v : memref<32xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %u, %p : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%f, %d : memref<32x600xf32>, memref<64x600xf32>) outs(%w : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"], tile_graph.reduction_block = 600 : i64} ins(%f, %d : memref<32x600xf32>, memref<64x600xf32>) outs(%w : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
