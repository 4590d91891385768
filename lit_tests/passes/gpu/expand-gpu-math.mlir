// RUN: magweld-opt --expand-gpu-math %s | filecheck %s

// CHECK-LABEL: gpu.func @intrinsics(
// CHECK:         llvm.call_intrinsic "llvm.exp2.f32"
// CHECK:         llvm.call_intrinsic "llvm.sqrt.f32"
// CHECK:         llvm.call_intrinsic "llvm.fma.f32"
// CHECK:         llvm.call_intrinsic "llvm.floor.f64"
// CHECK-NOT:     math.
gpu.module @intrinsics_module {
  gpu.func @intrinsics(%a: f32, %b: f64, %out: memref<f32>, %wide: memref<f64>) kernel {
    %0 = math.exp2 %a : f32
    %1 = math.sqrt %0 : f32
    %2 = math.fma %1, %a, %0 : f32
    %3 = math.floor %b : f64
    memref.store %2, %out[] : memref<f32>
    memref.store %3, %wide[] : memref<f64>
    gpu.return
  }
}

// The argument is reduced with two fused multiply-adds around the hardware's 2^r.
// CHECK-LABEL: gpu.func @exponential(
// CHECK:         %[[HIGH:.+]] = arith.constant 1.44269502 : f32
// CHECK:         llvm.call_intrinsic "llvm.fma.f32"(%[[X:.+]], %[[HIGH]], %{{.+}})
// CHECK:         %[[LOW:.+]] = arith.constant 1.92596303E-8 : f32
// CHECK:         %[[R:.+]] = llvm.call_intrinsic "llvm.fma.f32"(%{{.+}}, %[[LOW]], %{{.+}})
// CHECK:         %[[POWER:.+]] = llvm.call_intrinsic "llvm.exp2.f32"(%[[R]])
// CHECK:         arith.mulf %[[POWER]]
// CHECK-NOT:     math.
gpu.module @exponential_module {
  gpu.func @exponential(%a: f32, %out: memref<f32>) kernel {
    %0 = math.exp %a : f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}

// Other functions become arithmetic.
// CHECK-LABEL: gpu.func @arithmetic(
// CHECK-NOT:     math.
// CHECK:         llvm.call_intrinsic "llvm.copysign.f32"
gpu.module @arithmetic_module {
  gpu.func @arithmetic(%a: f32, %out: memref<f32>) kernel {
    %0 = math.erf %a : f32
    %1 = math.tanh %0 : f32
    memref.store %1, %out[] : memref<f32>
    gpu.return
  }
}

// CHECK-LABEL: func.func @host(
// CHECK:         math.exp
func.func @host(%a: f32) -> f32 {
  %0 = math.exp %a : f32
  return %0 : f32
}

// Waves and powers are computed in double precision, a square is a product.
// CHECK-LABEL: gpu.func @doubles(
// CHECK-SAME:      %[[A:.+]]: f32, %[[B:.+]]: f32,
// CHECK:         arith.mulf %[[A]], %[[A]] : f32
// CHECK:         arith.extf %{{.+}} : f32 to f64
// CHECK:         llvm.call_intrinsic "llvm.fma.f64"
// CHECK:         arith.truncf %{{.+}} : f64 to f32
// CHECK:         arith.divf %{{.+}} : f64
// CHECK-NOT:     math.
gpu.module @doubles_module {
  gpu.func @doubles(%a: f32, %b: f32, %out: memref<f32>) kernel {
    %two = arith.constant 2.0 : f32
    %0 = math.powf %a, %two : f32
    %1 = math.sin %0 : f32
    %2 = math.powf %1, %b : f32
    memref.store %2, %out[] : memref<f32>
    gpu.return
  }
}

// An erf whose product with others, or whose sum with 1, is rounded to halves, is
// 1 - 2^q by one instruction. One that is stored as it is, or added to something else,
// is not, nor one of which a multiple is added to -1: what that leaves may be little.
// CHECK-LABEL: gpu.func @halves(
// CHECK:         llvm.call_intrinsic "llvm.exp2.f32"
// CHECK-LABEL: gpu.func @stored_too(
// CHECK-NOT:     llvm.exp2
// CHECK-LABEL: gpu.func @added(
// CHECK-NOT:     llvm.exp2
// CHECK-LABEL: gpu.func @to_words(
// CHECK-NOT:     llvm.exp2
// CHECK-LABEL: gpu.func @multiple(
// CHECK-NOT:     llvm.exp2
// CHECK-LABEL: gpu.func @sum_of_sum(
// CHECK-NOT:     llvm.exp2
gpu.module @halves_module {
  gpu.func @halves(%a: f32, %out: memref<bf16>) kernel {
    %one = arith.constant 1.0 : f32
    %0 = math.erf %a : f32
    %1 = arith.addf %0, %one : f32
    %2 = arith.mulf %1, %a : f32
    %3 = arith.truncf %2 : f32 to bf16
    memref.store %3, %out[] : memref<bf16>
    gpu.return
  }
  gpu.func @stored_too(%a: f32, %out: memref<f16>, %all: memref<f32>) kernel {
    %0 = math.erf %a : f32
    %1 = arith.truncf %0 : f32 to f16
    memref.store %1, %out[] : memref<f16>
    memref.store %0, %all[] : memref<f32>
    gpu.return
  }
  gpu.func @added(%a: f32, %out: memref<f16>) kernel {
    %half = arith.constant 0.5 : f32
    %0 = math.erf %a : f32
    %1 = arith.addf %0, %half : f32
    %2 = arith.truncf %1 : f32 to f16
    memref.store %2, %out[] : memref<f16>
    gpu.return
  }
  gpu.func @to_words(%a: f64, %out: memref<f32>) kernel {
    %0 = arith.truncf %a : f64 to f32
    %1 = math.erf %0 : f32
    memref.store %1, %out[] : memref<f32>
    gpu.return
  }
  gpu.func @multiple(%a: f32, %out: memref<bf16>) kernel {
    %unit = arith.constant -1.0 : f32
    %factor = arith.constant 1.5 : f32
    %0 = math.erf %a : f32
    %1 = arith.mulf %0, %factor : f32
    %2 = arith.addf %1, %unit : f32
    %3 = arith.truncf %2 : f32 to bf16
    memref.store %3, %out[] : memref<bf16>
    gpu.return
  }
  gpu.func @sum_of_sum(%a: f32, %out: memref<bf16>) kernel {
    %one = arith.constant 1.0 : f32
    %unit = arith.constant -1.0 : f32
    %0 = math.erf %a : f32
    %1 = arith.addf %0, %one : f32
    %2 = arith.addf %1, %unit : f32
    %3 = arith.truncf %2 : f32 to bf16
    memref.store %3, %out[] : memref<bf16>
    gpu.return
  }
}
