// RUN: magweld-opt --plan-memory --verify-diagnostics %s

func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    attributes {tile_graph.kernel}

func.func @written_twice(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %1 = call @kernel(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // expected-error @+1 {{expected a destination of its own}}
  %2 = call @kernel(%1, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}
