// A product on a GPU reads the halves of a concatenation: what widens them is not sunk into
// its parts, of which matrix instructions and libraries would see f32.
//
// RUN: magweld-opt --target=nvvm:sm_90a --compile-from=linalg --compile-to=tile-graph %s | filecheck %s
//
// CHECK-LABEL: func.func @main(
// CHECK:         tensor.concat dim(1) {{.+}} -> tensor<8x7xbf16>
// CHECK:         linalg.matmul {{.*}}ins(%{{.+}}, %{{.+}} : tensor<8x7xbf16>, tensor<7x5xbf16>)
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<8x3xbf16>, %b: tensor<8x4xbf16>, %w: tensor<7x5xbf16>)
    -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %c = tensor.concat dim(1) %a, %b : (tensor<8x3xbf16>, tensor<8x4xbf16>) -> tensor<8x7xbf16>
  %e = tensor.empty() : tensor<8x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<8x7xbf16>) outs(%e : tensor<8x7xf32>) {
  ^bb0(%s: bf16, %o: f32):
    %t = arith.extf %s : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<8x7xf32>
  %f = tensor.empty() : tensor<7x5xf32>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<7x5xbf16>) outs(%f : tensor<7x5xf32>) {
  ^bb0(%s: bf16, %o: f32):
    %t = arith.extf %s : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<7x5xf32>
  %g = tensor.empty() : tensor<8x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%g : tensor<8x5xf32>) -> tensor<8x5xf32>
  %r = linalg.matmul ins(%x, %v : tensor<8x7xf32>, tensor<7x5xf32>)
      outs(%init : tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}
