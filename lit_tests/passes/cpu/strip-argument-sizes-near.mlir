// RUN: magweld-opt --strip-argument-sizes %s | filecheck %s

// Beside a buffer of dynamic extent, one whose size is known stays as it is.
//
// CHECK-LABEL: func.func @beside(
// CHECK-SAME:      %[[A:.+]]: memref<1x64xf32>, %[[W:.+]]: memref<64xf32>, %[[N:[a-z0-9]+]]: index, %{{.+}}: index, %{{.+}}: index)
// CHECK-NEXT:    %[[R:.+]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[N]], 64], strides: [64, 1]
// CHECK-NOT:     memref.reinterpret_cast
// CHECK:         memref.load %[[W]]
// CHECK:         return
func.func @beside(%a: memref<?x64xf32>, %w: memref<64xf32>, %n: index, %lo: index, %hi: index)
    attributes {tile_graph.kernel, tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  %v = memref.load %w[%lo] : memref<64xf32>
  memref.store %v, %a[%lo, %hi] : memref<?x64xf32>
  return
}

// Kernels of sizes that are known, and functions that are none, are left alone.
//
// CHECK-LABEL: func.func @known(
// CHECK-SAME:      memref<?x64xf32>
// CHECK-NOT:     reinterpret_cast
// CHECK:         return
func.func @known(%a: memref<?x64xf32>, %n: index, %lo: index, %hi: index) attributes {tile_graph.kernel} {
  return
}

// CHECK-LABEL: func.func @host(
// CHECK-SAME:      memref<?x64xf32>
// CHECK-NOT:     reinterpret_cast
// CHECK:         return
func.func @host(%a: memref<?x64xf32>, %n: index, %lo: index, %hi: index)
    attributes {tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  return
}
