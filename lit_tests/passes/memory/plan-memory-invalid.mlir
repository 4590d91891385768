// RUN: magweld-opt --plan-memory --split-input-file --verify-diagnostics %s

func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {tile_graph.kernel}

func.func @written_twice(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @kernel(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // expected-error @+1 {{expected a destination of its own}}
  %2 = call @kernel(%1, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// A joint call takes what its parts take.

func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {tile_graph.kernel}

// expected-error @+1 {{expected what its parts take and return}}
func.func private @joint(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {magweld.joint = [{callee = @kernel, share = 1 : i64},
                                 {callee = @kernel, share = 1 : i64}]}

// -----

// expected-error @+1 {{expected two parts, got 0}}
func.func private @joint() attributes {magweld.joint = []}

// -----

// What a call tells is known to no other kernel.

func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {tile_graph.kernel,
                tile_graph.runtime = {extent = 64 : i64, step = 8 : i64, beside = 1 : i64}}

// expected-error @+1 {{expected @kernel to be a kernel of known tiles, or a batch}}
func.func private @joint(
    tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
) -> (tensor<64xf32>, tensor<64xf32>)
    attributes {magweld.joint = [{callee = @kernel, share = 1 : i64},
                                 {callee = @kernel, share = 1 : i64}]}
