// RUN: not magweld-opt --serialize-to-binary="target=nvvm:sm_80" %s 2>&1 | filecheck %s
// RUN: not magweld-opt --serialize-to-binary="target=nvvm:sm_1" %s 2>&1 | filecheck --check-prefix=CHIP %s

// CHECK: the code calls __nv_expf, which no GPU module defines
// CHECK-SAME: [device-function]; hint: give the operation an expansion
// CHIP: no GPU code is generated for 'nvvm:sm_1'
// CHIP-SAME: [unknown-gpu-target]; hint: known targets: nvvm:sm_80
module attributes {gpu.container_module} {
  func.func @host(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<f32>)
    return
  }
  gpu.module @device {
    llvm.func @__nv_expf(f32) -> f32
    llvm.func @kernel(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %v = llvm.load %x : !llvm.ptr -> f32
      %e = llvm.call @__nv_expf(%v) : (f32) -> f32
      llvm.store %e, %x : f32, !llvm.ptr
      llvm.return
    }
  }
}
