// RUN: magweld-opt --generalize-copies %s | filecheck %s

// CHECK: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @copies(
// CHECK-SAME:      %[[A:.+]]: memref<4x8xf32>, %[[B:.+]]: memref<4x8xf32>)
// CHECK-NEXT:    linalg.generic {indexing_maps = [#[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[A]] : {{.+}}) outs(%[[B]] : {{.+}}) {
// CHECK-NEXT:    ^bb0(%[[IN:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:      linalg.yield %[[IN]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @copies(%a: memref<4x8xf32>, %b: memref<4x8xf32>) attributes {tile_graph.kernel} {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %b, %b : memref<4x8xf32> to memref<4x8xf32>
  return
}

// CHECK-LABEL: func.func @not_a_kernel(
// CHECK-NEXT:    memref.copy
func.func @not_a_kernel(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  return
}
