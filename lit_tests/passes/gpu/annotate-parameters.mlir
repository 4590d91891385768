// RUN: magweld-opt --annotate-parameters %s | filecheck %s

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:      %{{.+}}: memref<8xf32> {llvm.noalias}, %{{.+}}: f32, %{{.+}}: memref<8xf32> {llvm.noalias}) kernel
// CHECK-LABEL: gpu.func @helper(
// CHECK-SAME:      %{{[a-z0-9]+}}: memref<8xf32>) {
gpu.module @device {
  gpu.func @kernel(%x: memref<8xf32>, %v: f32, %y: memref<8xf32>) kernel {
    gpu.return
  }
  gpu.func @helper(%x: memref<8xf32>) {
    gpu.return
  }
}
