// RUN: not magweld-opt --lower-torch-to-linalg %s 2>&1 | filecheck %s

// CHECK: invalid.mlir:7:{{[0-9]+}}: error: 'torch.aten.sort' op has no lowering to linalg on static tensors
func.func @no_lowering(%x: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],si64> {
  %one = torch.constant.int 1
  %true = torch.constant.bool true
  %values, %indices = torch.aten.sort %x, %one, %true : !torch.vtensor<[4,8],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],si64>
  return %indices : !torch.vtensor<[4,8],si64>
}
