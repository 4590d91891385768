// Halves of a tensor that are read in place, slices of slices, rows of a product, and
// a slice that somebody else reads as well.
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<6x8xf32>, %w: tensor<4x5xf32>)
    -> (tensor<6x4xf32>, tensor<4x5xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %0 = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>)
    -> tensor<6x8xf32>
  %left = tensor.extract_slice %0[0, 0] [6, 4] [1, 1]
    : tensor<6x8xf32> to tensor<6x4xf32>
  %right = tensor.extract_slice %0[0, 4] [6, 4] [1, 1]
    : tensor<6x8xf32> to tensor<6x4xf32>
  %e1 = tensor.empty() : tensor<6x4xf32>
  %gate = linalg.generic {indexing_maps = [#all, #all, #all],
                          iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<6x4xf32>, tensor<6x4xf32>)
      outs(%e1 : tensor<6x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<6x4xf32>
  %rows = tensor.extract_slice %x[1, 2] [5, 5] [1, 1]
    : tensor<6x8xf32> to tensor<5x5xf32>
  %inner = tensor.extract_slice %rows[1, 1] [4, 4] [1, 1]
    : tensor<5x5xf32> to tensor<4x4xf32>
  %e2 = tensor.empty() : tensor<4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %product = linalg.matmul ins(%inner, %w : tensor<4x4xf32>, tensor<4x5xf32>)
    outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %shared = tensor.extract_slice %0[3, 0] [2, 8] [1, 1]
    : tensor<6x8xf32> to tensor<2x8xf32>
  %e3 = tensor.empty() : tensor<2x8xf32>
  %root = linalg.sqrt ins(%shared : tensor<2x8xf32>) outs(%e3 : tensor<2x8xf32>)
    -> tensor<2x8xf32>
  return %gate, %product, %shared, %root
    : tensor<6x4xf32>, tensor<4x5xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
