// REQUIRES: ptxas
// ptxas takes what is generated: a cubin stands beside the PTX.
// RUN: device-code --target nvvm:sm_80 --emit module %S/nvvm-elementwise.mlir | filecheck %s
// RUN: device-code --target nvvm:sm_90a --emit module %S/nvvm-elementwise.mlir | filecheck %s
// RUN: device-code --target nvvm:sm_80 --emit module %S/nvvm-softmax.mlir | filecheck %s
// RUN: device-code --target nvvm:sm_90a --emit module %S/nvvm-softmax.mlir | filecheck %s
// RUN: device-code --target nvvm:sm_80 --emit module %S/nvvm-matmul.mlir | filecheck %s
// RUN: device-code --target nvvm:sm_90a --emit module %S/nvvm-matmul.mlir | filecheck %s

// CHECK: gpu.binary @{{.+}} {magweld.launch =
// CHECK-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_{{80|90a}}">, assembly =
// CHECK-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_{{80|90a}}">, bin = "\7FELF
