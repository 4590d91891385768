// RUN: magweld-opt --annotate-kernels="vector-bits=256" %s | filecheck %s

// CHECK-LABEL: func.func public @kernel(
// CHECK-SAME:      memref<8xf32> {llvm.noalias}, %{{.+}}: memref<8xf32> {llvm.noalias}, %{{.+}}: index, %{{.+}}: index)
// CHECK-SAME:      passthrough = {{\[}}["min-legal-vector-width", "256"], ["prefer-vector-width", "256"]]
// CHECK:         arith.mulf %{{.+}}, %{{.+}} fastmath<contract> : f32
// CHECK:         arith.addf %{{.+}}, %{{.+}} fastmath<contract> : f32
// CHECK:         arith.divf %{{.+}}, %{{.+}} : f32
func.func private @kernel(%a: memref<8xf32>, %b: memref<8xf32>, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  %0 = memref.load %a[%lo] : memref<8xf32>
  %1 = arith.mulf %0, %0 : f32
  %2 = arith.addf %1, %0 : f32
  %3 = arith.divf %2, %0 : f32
  memref.store %3, %b[%lo] : memref<8xf32>
  return
}

// CHECK-LABEL: func.func private @helper(
// CHECK-SAME:      memref<8xf32>)
func.func private @helper(%a: memref<8xf32>) {
  return
}
