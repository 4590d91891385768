// From the torch dialect to `gpu.binary`, for an NVIDIA and an AMD one. Each phase is
// printed, read again and goes on as if it had not been.
//
// DEFINE: %{nvidia} = magweld-opt --target=nvvm:sm_80 --compile-to
// DEFINE: %{amd} = magweld-opt --target=rocdl:gfx942 --compile-to
//
// RUN: %{nvidia}=tiled %S/Inputs/linear-norm.mlir -o %t.tiled
// RUN: %{nvidia}=gpu --compile-from=tiled %t.tiled -o %t.gpu
// RUN: filecheck %s --check-prefix=GPU --input-file %t.gpu
// RUN: %{nvidia}=nvvm --compile-from=gpu %t.gpu -o %t.nvvm
// RUN: filecheck %s --check-prefix=NVVM --input-file %t.nvvm
// RUN: %{nvidia}=binary --compile-from=nvvm %t.nvvm -o %t.binary
// RUN: filecheck %s --check-prefix=BINARY --input-file %t.binary
// RUN: %{nvidia}=binary %S/Inputs/linear-norm.mlir | diff - %t.binary
// RUN: magweld-opt %t.binary | diff - %t.binary
//
// RUN: %{amd}=rocdl %S/Inputs/linear-norm.mlir -o %t.rocdl
// RUN: filecheck %s --check-prefix=ROCDL --input-file %t.rocdl
//
// The one is not the other.
// RUN: not %{amd}=binary %t.nvvm 2>&1 | filecheck %s --check-prefix=OTHER
// OTHER: at phase 'nvvm' is not on the way to target 'rocdl:gfx942' but to nvvm; phases of this target: torch,

// GPU-NOT:    @main
// GPU:        gpu.launch_func @kernel_0_kernel::@kernel_0_kernel blocks in (%c8, %c1, %c1) threads in (%c256, %c1, %c1)
// GPU:        gpu.func @kernel_0_kernel
// GPU:          gpu.barrier
// NVVM:       llvm.func @kernel_0_kernel
// NVVM-SAME:    nvvm.kernel
// BINARY:     gpu.binary @kernel_0_kernel
// BINARY-SAME:  assembly =
// ROCDL:      llvm.func @kernel_0_kernel
// ROCDL-SAME:   rocdl.kernel
