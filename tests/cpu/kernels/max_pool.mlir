// 3x3 maximum of a padded image [C, P, P] with stride 2 -> [C, H, H].
func.func @kernel_0(%x: tensor<1x${C}x${P}x${P}xf32>, %out0: tensor<1x${C}x${H}x${H}xf32>) -> tensor<1x${C}x${H}x${H}xf32> attributes {tile_graph.kernel} {
  %lowest = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %r = scf.forall (%i) = (0) to (${C}) step (${T}) shared_outs(%o = %out0) -> (tensor<1x${C}x${H}x${H}xf32>) {
    %sx = tensor.extract_slice %x[0, %i, 0, 0] [1, ${T}, ${P}, ${P}] [1, 1, 1, 1] : tensor<1x${C}x${P}x${P}xf32> to tensor<1x${T}x${P}x${P}xf32>
    %so = tensor.extract_slice %o[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${C}x${H}x${H}xf32> to tensor<1x${T}x${H}x${H}xf32>
    %low = linalg.fill ins(%lowest : f32) outs(%so : tensor<1x${T}x${H}x${H}xf32>) -> tensor<1x${T}x${H}x${H}xf32>
    %y = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%sx, %window : tensor<1x${T}x${P}x${P}xf32>, tensor<3x3xf32>) outs(%low : tensor<1x${T}x${H}x${H}xf32>) -> tensor<1x${T}x${H}x${H}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, %i, 0, 0] [1, ${T}, ${H}, ${H}] [1, 1, 1, 1] : tensor<1x${T}x${H}x${H}xf32> into tensor<1x${C}x${H}x${H}xf32>
    }
  }
  return %r : tensor<1x${C}x${H}x${H}xf32>
}
