// Convolution of a padded image [1, C, P, P] with [O, C, K, K] and stride S -> [1, O, H, H], rows in tiles.
#first = affine_map<(d0) -> (d0 * ${S})>
func.func @kernel_0(%x: tensor<1x${C}x${P}x${P}xf32>, %w: tensor<${O}x${C}x${K}x${K}xf32>, %out0: tensor<1x${O}x${H}x${H}xf32>) -> tensor<1x${O}x${H}x${H}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%i) = (0) to (${H}) step (${T}) shared_outs(%o = %out0) -> (tensor<1x${O}x${H}x${H}xf32>) {
    %j = affine.apply #first(%i)
    %sx = tensor.extract_slice %x[0, 0, %j, 0] [1, ${C}, ${R}, ${P}] [1, 1, 1, 1] : tensor<1x${C}x${P}x${P}xf32> to tensor<1x${C}x${R}x${P}xf32>
    %so = tensor.extract_slice %o[0, 0, %i, 0] [1, ${O}, ${T}, ${H}] [1, 1, 1, 1] : tensor<1x${O}x${H}x${H}xf32> to tensor<1x${O}x${T}x${H}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%so : tensor<1x${O}x${T}x${H}xf32>) -> tensor<1x${O}x${T}x${H}xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<${S}> : vector<2xi64>} ins(%sx, %w : tensor<1x${C}x${R}x${P}xf32>, tensor<${O}x${C}x${K}x${K}xf32>) outs(%blank : tensor<1x${O}x${T}x${H}xf32>) -> tensor<1x${O}x${T}x${H}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, %i, 0] [1, ${O}, ${T}, ${H}] [1, 1, 1, 1] : tensor<1x${O}x${T}x${H}xf32> into tensor<1x${O}x${H}x${H}xf32>
    }
  }
  return %r : tensor<1x${O}x${H}x${H}xf32>
}
