// RUN: magweld-opt --contract-multiply-add %s | filecheck %s

// CHECK-LABEL: gpu.func @kernel(
// CHECK:         arith.mulf %{{.+}}, %{{.+}} fastmath<contract> : f32
// CHECK:         arith.addf %{{.+}}, %{{.+}} fastmath<contract> : f32
// CHECK:         arith.subf %{{.+}}, %{{.+}} fastmath<contract> : f32
// CHECK:         arith.divf %{{.+}}, %{{.+}} : f32
gpu.module @device {
  gpu.func @kernel(%a: f32, %b: f32, %out: memref<f32>) kernel {
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %a : f32
    %2 = arith.subf %1, %b : f32
    %3 = arith.divf %2, %b : f32
    memref.store %3, %out[] : memref<f32>
    gpu.return
  }
}

// Host code is left alone.
// CHECK-LABEL: func.func @host(
// CHECK:         arith.mulf %{{.+}}, %{{.+}} : f32
func.func @host(%a: f32, %b: f32) -> f32 {
  %0 = arith.mulf %a, %b : f32
  return %0 : f32
}
