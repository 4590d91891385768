// RUN: magweld-opt --declare-shared-memory %s | filecheck %s
// RUN: magweld-opt --declare-shared-memory="alignment=1024" %s | filecheck %s --check-prefix=SWIZZLED

// CHECK-LABEL: gpu.module @device
// CHECK:         llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK:         llvm.mlir.global internal constant @table
// SWIZZLED:      @shared() {addr_space = 3 : i32, alignment = 1024 : i64}
gpu.module @device {
  llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @table(dense<1.0> : tensor<2xf32>) : !llvm.array<2 x f32>
}
