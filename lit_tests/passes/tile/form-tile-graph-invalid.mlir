// RUN: magweld-opt --form-tile-graph="device=a100" --split-input-file --verify-diagnostics %s

func.func @scalar(%x: tensor<4xf32>, %f: f32) -> tensor<4xf32> {
  // expected-error @+1 {{'linalg.fill' op reads f32, expected tensors only}}
  %0 = linalg.fill ins(%f : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @other_op(%x: tensor<4xf32>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'tensor.dim' op cannot be part of a tile graph}}
  %0 = tensor.dim %x, %c0 : tensor<4xf32>
  return %0 : index
}
