// RUN: not magweld-opt --expand-gpu-math %s 2>&1 | filecheck %s

// CHECK: 'math.exp' of f64 has no expansion for GPUs
// CHECK-SAME: [gpu-math-function]; hint: compute it in f32
gpu.module @device {
  gpu.func @kernel(%a: f64, %out: memref<f64>) kernel {
    %0 = math.exp %a : f64
    memref.store %0, %out[] : memref<f64>
    gpu.return
  }
}
