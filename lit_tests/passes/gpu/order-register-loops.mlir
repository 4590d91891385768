// RUN: magweld-opt --order-register-loops %s | filecheck %s

!shared = memref<4x8xf32, #gpu.address_space<workgroup>>
!registers = memref<4x4xf32, #gpu.address_space<private>>

// CHECK-DAG: #[[A:.+]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[B:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[C:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @kernel(
// CHECK:         linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types = ["reduction", "parallel", "parallel"]}
// A result that is not in registers, and loops that are in order, stay.
// CHECK:         linalg.matmul
// CHECK:         linalg.exp
// CHECK-NOT:     magweld.interchange
func.func @kernel(%a: !shared, %b: memref<8x4xf32>, %out: memref<4x4xf32>) attributes {tile_graph.kernel} {
  %acc = memref.alloca() : !registers
  linalg.matmul ins(%a, %b : !shared, memref<8x4xf32>) outs(%acc : !registers)
  linalg.matmul ins(%a, %b : !shared, memref<8x4xf32>) outs(%out : memref<4x4xf32>)
  linalg.exp ins(%acc : !registers) outs(%acc : !registers)
  return
}
