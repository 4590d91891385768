// The result of every GPU phase, stripped, is read by the mlir-opt of an LLVM release.
//
// REQUIRES: mlir-opt
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=gpu %S/Inputs/linear-norm.mlir -o %t.gpu
// RUN: magweld-opt --strip-tile-graph %t.gpu | %mlir-opt | filecheck %s --check-prefix=GPU
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=nvvm %t.gpu -o %t.nvvm
// RUN: magweld-opt --strip-tile-graph %t.nvvm | %mlir-opt | filecheck %s --check-prefix=NVVM
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=binary %t.nvvm | magweld-opt --strip-tile-graph - | %mlir-opt | filecheck %s --check-prefix=BINARY

// GPU:    gpu.func @kernel_0_kernel
// NVVM:   llvm.func @kernel_0_kernel
// BINARY: gpu.binary @kernel_0_kernel
