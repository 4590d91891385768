// Softmax attention: two products around a row softmax.
#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, n, k)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @main(%q: tensor<2x6x4xf32>, %k: tensor<2x9x4xf32>, %v: tensor<2x9x4xf32>)
    -> tensor<2x6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %half = arith.constant 0.5 : f32
  %scores = tensor.empty() : tensor<2x6x9xf32>
  %rows = tensor.empty() : tensor<2x6xf32>
  %values = tensor.empty() : tensor<2x6x4xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%scores : tensor<2x6x9xf32>)
    -> tensor<2x6x9xf32>
  %1 = linalg.generic {indexing_maps = [#lhs, #rhs, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%q, %k : tensor<2x6x4xf32>, tensor<2x9x4xf32>)
    outs(%0 : tensor<2x6x9xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6x9xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%1 : tensor<2x6x9xf32>) outs(%scores : tensor<2x6x9xf32>) {
  ^bb0(%x: f32, %u: f32):
    %p = arith.mulf %x, %half : f32
    linalg.yield %p : f32
  } -> tensor<2x6x9xf32>
  %3 = linalg.fill ins(%lowest : f32) outs(%rows : tensor<2x6xf32>) -> tensor<2x6xf32>
  %4 = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%2 : tensor<2x6x9xf32>) outs(%3 : tensor<2x6xf32>) {
  ^bb0(%x: f32, %max: f32):
    %m = arith.maximumf %max, %x : f32
    linalg.yield %m : f32
  } -> tensor<2x6xf32>
  %5 = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%2, %4 : tensor<2x6x9xf32>, tensor<2x6xf32>)
    outs(%scores : tensor<2x6x9xf32>) {
  ^bb0(%x: f32, %max: f32, %u: f32):
    %d = arith.subf %x, %max : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x6x9xf32>
  %6 = linalg.fill ins(%zero : f32) outs(%rows : tensor<2x6xf32>) -> tensor<2x6xf32>
  %7 = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%5 : tensor<2x6x9xf32>) outs(%6 : tensor<2x6xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %s = arith.addf %sum, %x : f32
    linalg.yield %s : f32
  } -> tensor<2x6xf32>
  %8 = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%5, %7 : tensor<2x6x9xf32>, tensor<2x6xf32>)
    outs(%scores : tensor<2x6x9xf32>) {
  ^bb0(%x: f32, %sum: f32, %u: f32):
    %d = arith.divf %x, %sum : f32
    linalg.yield %d : f32
  } -> tensor<2x6x9xf32>
  %9 = linalg.fill ins(%zero : f32) outs(%values : tensor<2x6x4xf32>)
    -> tensor<2x6x4xf32>
  %10 = linalg.batch_matmul ins(%8, %v : tensor<2x6x9xf32>, tensor<2x9x4xf32>)
    outs(%9 : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %10 : tensor<2x6x4xf32>
}
