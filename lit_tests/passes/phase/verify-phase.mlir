// A module is at the phase that it is said to be at, or an error tells where it is.
// RUN: echo 'module {}' | magweld-opt --verify-phase=phase=llvm -
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

// Nothing is at every phase.

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

// -----

// Attributes that passes leave on ops of other dialects have rules as well.
// expected-error @below {{'func.func' op expected attribute 'tile_graph.parts' to be at least 1, got 0 : i64}}
func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel, tile_graph.parts = 0 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel} {
  // expected-error @below {{'tensor.empty' op expected attribute 'magweld.place' to be StringAttr, got 7 : i64}}
  %e = tensor.empty() {magweld.place = 7 : i64} : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel} {
  // expected-error @below {{'tensor.empty' op expected no attribute 'magweld.tiles', which is of 'func.func' or 'llvm.func'}}
  %e = tensor.empty() {magweld.tiles = 7 : i64} : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op expected no attribute 'magweld.arena': no pass leaves such a one}}
func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel, magweld.arena = 7 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func private @kernel_0(%x: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {tile_graph.kernel} {
  // expected-error @below {{'linalg.generic' op expected a fragment in attribute 'tile_graph.fragment': expected rows of product 16, got [4, 2]}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      outs(%x : tensor<4x4xf32>) attrs = {tile_graph.fragment = #tile_graph.fragment<"mfma", [16, 16, 16], [4, 2], [16], [0, 0], [1, 1]>} {
  ^bb0(%old: f32):
    linalg.yield %old : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
