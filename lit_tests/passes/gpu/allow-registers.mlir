// Two blocks where shared memory has room for both, one where it has not, or where the
// sums of warpgroups take the registers.
// RUN: magweld-opt --allow-registers=capacity=232448 %s | filecheck %s

// CHECK-LABEL: llvm.func @streams
// CHECK-SAME:      nvvm.minctasm = 2 : i32
// CHECK-LABEL: llvm.func @half
// CHECK-SAME:      nvvm.minctasm = 2 : i32
// CHECK-LABEL: llvm.func @more_than_half
// CHECK-SAME:      nvvm.minctasm = 1 : i32
// CHECK-LABEL: llvm.func @many_threads
// CHECK-SAME:      nvvm.minctasm = 1 : i32
// CHECK-LABEL: llvm.func @warpgroups
// CHECK-SAME:      nvvm.minctasm = 1 : i32
// CHECK-LABEL: llvm.func @called
// CHECK-NOT:       nvvm.minctasm
module attributes {gpu.container_module} {
gpu.module @device {
  llvm.func @streams() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  llvm.func @half() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  llvm.func @more_than_half() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  llvm.func @many_threads() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  llvm.func @warpgroups() attributes {gpu.kernel, nvvm.kernel} {
    nvvm.wgmma.fence.aligned
    llvm.return
  }
  llvm.func @called() { llvm.return }
}
func.func @host() {
  %one = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %many = arith.constant 1024 : index
  %half = arith.constant 115712 : i32
  %more = arith.constant 115728 : i32
  gpu.launch_func @device::@streams blocks in (%one, %one, %one) threads in (%threads, %one, %one)
  gpu.launch_func @device::@half blocks in (%one, %one, %one) threads in (%threads, %one, %one) dynamic_shared_memory_size %half
  gpu.launch_func @device::@more_than_half blocks in (%one, %one, %one) threads in (%threads, %one, %one) dynamic_shared_memory_size %more
  gpu.launch_func @device::@many_threads blocks in (%one, %one, %one) threads in (%many, %one, %one)
  gpu.launch_func @device::@warpgroups blocks in (%one, %one, %one) threads in (%threads, %one, %one)
  return
}
}
