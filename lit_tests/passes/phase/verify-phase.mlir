// A module is at the phase that it is said to be at, or an error tells where it is.
// RUN: magweld-opt --split-input-file --verify-phase=phase=tiled --verify-diagnostics %s

// A kernel.
func.func private @kernel_0(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Library calls alone.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {magweld.arena_bytes = 0 : i64} {
  return %x : tensor<4xf32>
}

// -----

// Nothing is at every phase of a graph.

// -----

// expected-error @unknown {{expected to be at phase 'tiled', got 'torch'}}
func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  return %x : !torch.vtensor<[4],f32>
}

// -----

// expected-error @unknown {{expected to be at phase 'tiled', got 'linalg'}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
