// RUN: magweld-opt --serialize-to-binary="target=nvvm:sm_90a" %s | filecheck %s

// CHECK:       gpu.binary @device {magweld.launch =
// CHECK-SAME:      {arguments = array<i64: 1>, block = array<i64: 32, 1, 1>, dynamic_shared_bytes = 64 : i64, grid = array<i64: 4, 1, 1>, members = 1 : i64, symbol = "kernel"}}
// CHECK-SAME:      #gpu.object<#nvvm.target<O = 3, chip = "sm_90a">, assembly =
// CHECK-SAME:      .target sm_90a
// CHECK-SAME:      .entry kernel(
// CHECK-NOT:   gpu.module
module attributes {gpu.container_module} {
  func.func @host(%unused: memref<8xf32>, %x: memref<128xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %bytes = arith.constant 64 : i32
    gpu.launch_func @device::@kernel blocks in (%c4, %c1, %c1) threads in (%c32, %c1, %c1) dynamic_shared_memory_size %bytes args(%x : memref<128xf32>)
    return
  }
  gpu.module @device {
    llvm.func @kernel(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %i = nvvm.read.ptx.sreg.tid.x : i32
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.mlir.constant(1.0 : f32) : f32
      llvm.store %v, %p : f32, !llvm.ptr
      llvm.return
    }
  }
}
