// [B, X, Y, D] -> [B, Y, X, D].
func.func @kernel_0(%x: tensor<${B}x${X}x${Y}x${D}xf32>, %out0: tensor<${B}x${Y}x${X}x${D}xf32>) -> tensor<${B}x${Y}x${X}x${D}xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%i) = (0) to (${B}) step (1) shared_outs(%o = %out0) -> (tensor<${B}x${Y}x${X}x${D}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0, 0, 0] [1, ${X}, ${Y}, ${D}] [1, 1, 1, 1] : tensor<${B}x${X}x${Y}x${D}xf32> to tensor<1x${X}x${Y}x${D}xf32>
    %so = tensor.extract_slice %o[%i, 0, 0, 0] [1, ${Y}, ${X}, ${D}] [1, 1, 1, 1] : tensor<${B}x${Y}x${X}x${D}xf32> to tensor<1x${Y}x${X}x${D}xf32>
    %y = linalg.transpose ins(%sx : tensor<1x${X}x${Y}x${D}xf32>) outs(%so : tensor<1x${Y}x${X}x${D}xf32>) permutation = [0, 2, 1, 3]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0, 0, 0] [1, ${Y}, ${X}, ${D}] [1, 1, 1, 1] : tensor<1x${Y}x${X}x${D}xf32> into tensor<${B}x${Y}x${X}x${D}xf32>
    }
  }
  return %r : tensor<${B}x${Y}x${X}x${D}xf32>
}
