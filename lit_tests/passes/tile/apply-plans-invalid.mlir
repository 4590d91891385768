// RUN: magweld-opt --verify-diagnostics --apply-plans %s

// expected-error@below {{is a plan, expected it to have a device}}
func.func private @plan(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.plan = "of nothing"} {
  return %x : tensor<4xf32>
}
