// x[c, w - 1] + x[c, w] + x[c, w + 1] with zeros around x.
#before = affine_map<(d0) -> (d0 - 1)>
#least = affine_map<(d0) -> (d0, 0)>
#most = affine_map<(d0) -> (d0, ${W} - ${R})>
#within = affine_map<(d0, d1) -> (d0 - d1)>
func.func @kernel_0(%x: tensor<${C}x${W}xf32>, %out0: tensor<${C}x${W}xf32>) -> tensor<${C}x${W}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %r = scf.forall (%w) = (0) to (${W}) step (${T}) shared_outs(%o = %out0) -> (tensor<${C}x${W}xf32>) {
    %first = affine.apply #before(%w)
    %inside = affine.max #least(%first)
    %start = affine.min #most(%inside)
    %from = tensor.extract_slice %x[0, %start] [${C}, ${R}] [1, 1] : tensor<${C}x${W}xf32> to tensor<${C}x${R}xf32>
    %empty = tensor.empty() : tensor<${C}x${B}xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%empty : tensor<${C}x${B}xf32>) -> tensor<${C}x${B}xf32>
    %padded = tensor.insert_slice %from into %blank[0, 1] [${C}, ${R}] [1, 1] : tensor<${C}x${R}xf32> into tensor<${C}x${B}xf32>
    %before = affine.apply #within(%w, %start)
    %window = tensor.extract_slice %padded[0, %before] [${C}, ${R}] [1, 1] : tensor<${C}x${B}xf32> to tensor<${C}x${R}xf32>
    %so = tensor.extract_slice %o[0, %w] [${C}, ${T}] [1, 1] : tensor<${C}x${W}xf32> to tensor<${C}x${T}xf32>
    %sums = linalg.fill ins(%zero : f32) outs(%so : tensor<${C}x${T}xf32>) -> tensor<${C}x${T}xf32>
    %points = tensor.empty() : tensor<3xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(c, w, j) -> (c, w + j)>, affine_map<(c, w, j) -> (j)>, affine_map<(c, w, j) -> (c, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%window, %points : tensor<${C}x${R}xf32>, tensor<3xf32>) outs(%sums : tensor<${C}x${T}xf32>) {
    ^bb0(%v: f32, %j: f32, %s: f32):
      %0 = arith.addf %v, %s : f32
      linalg.yield %0 : f32
    } -> tensor<${C}x${T}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, %w] [${C}, ${T}] [1, 1] : tensor<${C}x${T}xf32> into tensor<${C}x${W}xf32>
    }
  }
  return %r : tensor<${C}x${W}xf32>
}
