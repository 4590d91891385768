// A size that is no constant is refused where it comes from, in every dialect in which
// torch-mlir's importer may give it.
//
// RUN: not magweld-opt --compile-to=tiled --device=a100 --split-input-file %s 2>&1 | filecheck %s

// CHECK:      dynamic-sizes.mlir:[[# @LINE + 3]]:1: error: dimension 0 of argument 0 of @torch, tensor<?x32xf32>, has no constant size [dynamic-size]; hint: give the module tensors of constant shapes
// CHECK-NEXT: func.func @torch
// CHECK:      note: in pass 'lower-torch-to-linalg'
func.func @torch(%x: !torch.vtensor<[?,32],f32>) -> !torch.vtensor<[?,32],f32> {
  %0 = torch.aten.exp %x : !torch.vtensor<[?,32],f32> -> !torch.vtensor<[?,32],f32>
  return %0 : !torch.vtensor<[?,32],f32>
}

// -----

// CHECK:      error: dimension 0 of argument 0 of @linalg, tensor<?x32xf32>, has no constant size [dynamic-size]
// CHECK:      note: in pass 'form-tile-graph'
func.func @linalg(%x: tensor<?x32xf32>, %y: tensor<4x32xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%d) : tensor<?x32xf32>
  %0 = linalg.exp ins(%x : tensor<?x32xf32>) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// The arguments have constant sizes, a tensor made from them has not.
// CHECK:      error: dimension 1 of the result of 'tensor.empty', tensor<4x?xf32>, has no constant size [dynamic-size]
// CHECK-NEXT: %e = tensor.empty(%n)
func.func @inside(%n: index) -> tensor<4x?xf32> {
  %e = tensor.empty(%n) : tensor<4x?xf32>
  %0 = linalg.exp ins(%e : tensor<4x?xf32>) outs(%e : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// What a call gives.
// CHECK:      error: dimension 0 of the result of 'func.call', tensor<?xf32>, has no constant size [dynamic-size]
func.func private @declared(tensor<4xf32>) -> tensor<?xf32>
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @declared(%x) : (tensor<4xf32>) -> tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
