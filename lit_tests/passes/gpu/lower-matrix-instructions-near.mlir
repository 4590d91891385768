// RUN: magweld-opt --lower-matrix-instructions %s | filecheck %s

// A product that no instruction was chosen for stays one.
//
// CHECK-LABEL: func.func @kernel(
// CHECK:         linalg.matmul
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @kernel(%a: memref<16x16xbf16>, %b: memref<16x16xbf16>, %c: memref<16x16xf32>) attributes {tile_graph.kernel} {
  linalg.matmul ins(%a, %b : memref<16x16xbf16>, memref<16x16xbf16>) outs(%c : memref<16x16xf32>)
  return
}
