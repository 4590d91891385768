// exp(y - max y) of y = a b + bias by rows, all of it in half precision: each operator rounds.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @kernel_0(%a: tensor<32x64x${E}>, %b: tensor<64x32x${E}>, %bias: tensor<32x${E}>, %out0: tensor<32x32x${E}>) -> tensor<32x32x${E}> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = scf.forall (%i) = (0) to (32) step (16) shared_outs(%o = %out0) -> (tensor<32x32x${E}>) {
    %sa = tensor.extract_slice %a[%i, 0] [16, 64] [1, 1] : tensor<32x64x${E}> to tensor<16x64x${E}>
    %so = tensor.extract_slice %o[%i, 0] [16, 32] [1, 1] : tensor<32x32x${E}> to tensor<16x32x${E}>
    %e = tensor.empty() : tensor<16x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
    %mm = linalg.matmul ins(%sa, %b : tensor<16x64x${E}>, tensor<64x32x${E}>) outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
    %eh = tensor.empty() : tensor<16x32x${E}>
    %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%mm, %bias : tensor<16x32xf32>, tensor<32x${E}>) outs(%eh : tensor<16x32x${E}>) {
    ^bb0(%x: f32, %c: ${E}, %u: ${E}):
      %r0 = arith.truncf %x : f32 to ${E}
      %x1 = arith.extf %r0 : ${E} to f32
      %c1 = arith.extf %c : ${E} to f32
      %s = arith.addf %x1, %c1 : f32
      %t = arith.truncf %s : f32 to ${E}
      linalg.yield %t : ${E}
    } -> tensor<16x32x${E}>
    %em = tensor.empty() : tensor<16x${E}>
    %em32 = tensor.empty() : tensor<16xf32>
    %fm = linalg.fill ins(%low : f32) outs(%em32 : tensor<16xf32>) -> tensor<16xf32>
    %mx = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<16x32x${E}>) outs(%fm : tensor<16xf32>) {
    ^bb0(%x: ${E}, %acc: f32):
      %x1 = arith.extf %x : ${E} to f32
      %m = arith.maximumf %x1, %acc : f32
      linalg.yield %m : f32
    } -> tensor<16xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%h, %mx : tensor<16x32x${E}>, tensor<16xf32>) outs(%so : tensor<16x32x${E}>) {
    ^bb0(%x: ${E}, %m: f32, %u: ${E}):
      %x1 = arith.extf %x : ${E} to f32
      %d = arith.subf %x1, %m : f32
      %p = math.exp %d : f32
      %q = arith.truncf %p : f32 to ${E}
      linalg.yield %q : ${E}
    } -> tensor<16x32x${E}>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [16, 32] [1, 1] : tensor<16x32x${E}> into tensor<32x32x${E}>
    }
  }
  return %r : tensor<32x32x${E}>
}
