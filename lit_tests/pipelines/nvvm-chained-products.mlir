// Sums of products that follow each other in a block begin from zeros of their own, so
// that all of them lie in registers: shared memory has halves alone.
//
// RUN: magweld-opt %s --target=nvvm:sm_80 --compile-from=tiled --compile-to=gpu \
// RUN:   | filecheck %s

// CHECK:         gpu.func @chain
// CHECK-NOT:     memref<{{[0-9x]+}}xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-4: llvm.nvvm.mma.m
// CHECK-NOT:     memref<{{[0-9x]+}}xf32, #gpu.address_space<workgroup>>
// CHECK:         gpu.return
#identity = affine_map<(d0, d1) -> (d0, d1)>
func.func private @chain(%x: tensor<128x32xbf16>, %w: tensor<32x32xbf16>, %v: tensor<32x32xbf16>, %out: tensor<128x32xbf16>) -> tensor<128x32xbf16> attributes {tile_graph.kernel} {
  %r = scf.forall (%i) = (0) to (128) step (64) shared_outs(%o = %out) -> (tensor<128x32xbf16>) {
    %rows = tensor.extract_slice %x[%i, 0] [64, 32] [1, 1] : tensor<128x32xbf16> to tensor<64x32xbf16>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %a = linalg.matmul ins(%rows, %w : tensor<64x32xbf16>, tensor<32x32xbf16>) outs(%f : tensor<64x32xf32>) -> tensor<64x32xf32>
    %h = tensor.empty() : tensor<64x32xbf16>
    %b = linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x32xf32>) outs(%h : tensor<64x32xbf16>) {
    ^bb0(%in: f32, %to: bf16):
      %n = arith.truncf %in : f32 to bf16
      linalg.yield %n : bf16
    } -> tensor<64x32xbf16>
    %e1 = tensor.empty() : tensor<64x32xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x32xf32>) -> tensor<64x32xf32>
    %c = linalg.matmul ins(%b, %v : tensor<64x32xbf16>, tensor<32x32xbf16>) outs(%f1 : tensor<64x32xf32>) -> tensor<64x32xf32>
    %to = tensor.extract_slice %o[%i, 0] [64, 32] [1, 1] : tensor<128x32xbf16> to tensor<64x32xbf16>
    %d = linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<64x32xf32>) outs(%to : tensor<64x32xbf16>) {
    ^bb0(%in: f32, %old: bf16):
      %n = arith.truncf %in : f32 to bf16
      linalg.yield %n : bf16
    } -> tensor<64x32xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i, 0] [64, 32] [1, 1] : tensor<64x32xbf16> into tensor<128x32xbf16>
    }
  }
  return %r : tensor<128x32xbf16>
}
