// RUN: magweld-opt --block-reductions --canonicalize %s | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#shifted = affine_map<(m, n, k) -> (m + k)>

// 600 iterations are four blocks, of as many whole cache lines as it takes: the last one
// has 120. The result is read and written by each of them whole.
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
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<32x600xf32>, memref<64x600xf32, strided<[600, 1], offset: ?>>) outs(%y : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Left alone: sums that would be rounded between two blocks, operands that few rows read
// again, a reduction that is no index of its own, and one of fewer than two blocks.
//
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @others(%a: memref<32x600xf16>, %b: memref<64x600xf16>, %y: memref<32x64xf16>,
                  %c: memref<8x600xf32>, %d: memref<64x600xf32>, %z: memref<8x64xf32>,
                  %e: memref<631xf32>, %w: memref<32x64xf32>,
                  %f: memref<32x380xf32>, %g: memref<64x380xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<32x600xf16>, memref<64x600xf16>) outs(%y : memref<32x64xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %0 = arith.mulf %p, %q : f16
    %1 = arith.addf %u, %0 : f16
    linalg.yield %1 : f16
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%c, %d : memref<8x600xf32>, memref<64x600xf32>) outs(%z : memref<8x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#shifted, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e, %d : memref<631xf32>, memref<64x600xf32>) outs(%w : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%f, %g : memref<32x380xf32>, memref<64x380xf32>) outs(%w : memref<32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
