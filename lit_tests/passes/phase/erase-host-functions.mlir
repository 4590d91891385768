// Only kernels are lowered to code; what calls them is a list of steps.
// RUN: magweld-opt --erase-host-functions %s | filecheck %s

// CHECK-NOT:   @main
// CHECK:       func.func private @kernel_0
// CHECK-NOT:   @library_0
// CHECK-NOT:   @scale
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = call @kernel_0(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @library_0(%0, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @kernel_0(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @library_0(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
memref.global "private" constant @scale : memref<1xf32> = dense<1.0>
