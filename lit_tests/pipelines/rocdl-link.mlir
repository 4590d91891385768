// REQUIRES: amd-lld
// The linked code object is the one object of the binary.
// RUN: device-code --target rocdl:gfx942 --emit module %S/nvvm-elementwise.mlir | filecheck %s
// RUN: device-code --target rocdl:gfx942 --emit module %S/nvvm-softmax.mlir | filecheck %s
// RUN: device-code --target rocdl:gfx942 --emit module %S/nvvm-matmul.mlir | filecheck %s

// CHECK: gpu.binary @{{.+}} {magweld.launch = {arguments = array<i64: {{.+}}>, block = array<i64: 256, 1, 1>
// CHECK-SAME: [#gpu.object<#rocdl.target<O = 3, chip = "gfx942">, bin = "\7FELF
