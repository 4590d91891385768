// softmax(x + mask) over the last dimension; one mask row for each batch.
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#per_row = affine_map<(d0, d1, d2) -> (d0, d1)>
#column = affine_map<(d0, d1, d2) -> (d2)>
func.func @kernel_0(%x: tensor<${B}x${S}x${S}xf32>, %mask: tensor<${S}xf32>, %out0: tensor<${B}x${S}x${S}xf32>) -> tensor<${B}x${S}x${S}xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.000000e+00 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %r = scf.forall (%i) = (0) to (${B}) step (1) shared_outs(%o = %out0) -> (tensor<${B}x${S}x${S}xf32>) {
    %sx = tensor.extract_slice %x[%i, 0, 0] [1, ${S}, ${S}] [1, 1, 1] : tensor<${B}x${S}x${S}xf32> to tensor<1x${S}x${S}xf32>
    %e = tensor.empty() : tensor<1x${S}x${S}xf32>
    %e1 = tensor.empty() : tensor<1x${S}xf32>
    %added = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sx, %mask : tensor<1x${S}x${S}xf32>, tensor<${S}xf32>) outs(%e : tensor<1x${S}x${S}xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      linalg.yield %0 : f32
    } -> tensor<1x${S}x${S}xf32>
    %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<1x${S}xf32>) -> tensor<1x${S}xf32>
    %max = linalg.generic {indexing_maps = [#all, #per_row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%added : tensor<1x${S}x${S}xf32>) outs(%low : tensor<1x${S}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.maximumf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<1x${S}xf32>
    %exp = linalg.generic {indexing_maps = [#all, #per_row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%added, %max : tensor<1x${S}x${S}xf32>, tensor<1x${S}xf32>) outs(%e : tensor<1x${S}x${S}xf32>) {
    ^bb0(%p: f32, %m: f32, %u: f32):
      %0 = arith.subf %p, %m : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x${S}x${S}xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x${S}xf32>) -> tensor<1x${S}xf32>
    %sum = linalg.generic {indexing_maps = [#all, #per_row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<1x${S}x${S}xf32>) outs(%none : tensor<1x${S}xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<1x${S}xf32>
    %y = linalg.generic {indexing_maps = [#all, #per_row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<1x${S}x${S}xf32>, tensor<1x${S}xf32>) outs(%e : tensor<1x${S}x${S}xf32>) {
    ^bb0(%p: f32, %s: f32, %u: f32):
      %0 = arith.divf %p, %s : f32
      linalg.yield %0 : f32
    } -> tensor<1x${S}x${S}xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0, 0] [1, ${S}, ${S}] [1, 1, 1] : tensor<1x${S}x${S}xf32> into tensor<${B}x${S}x${S}xf32>
    }
  }
  return %r : tensor<${B}x${S}x${S}xf32>
}
