// Copies by the tensor memory accelerator are read by the mlir-opt of an LLVM release, in
// the gpu dialect and in LLVM's.
//
// REQUIRES: mlir-opt
// RUN: device-code --target nvvm:sm_90a --emit gpu %s | magweld-opt --strip-tile-graph - | %mlir-opt | filecheck %s --check-prefix=GPU
// RUN: device-code --target nvvm:sm_90a --emit llvm %s | magweld-opt --strip-tile-graph - | %mlir-opt | filecheck %s --check-prefix=LLVM
// RUN: device-code --target nvvm:sm_90a --emit assembly %s | filecheck %s --check-prefix=PTX

// GPU:  nvvm.mbarrier.init
// GPU:  nvvm.cp.async.bulk.tensor.shared.cluster.global
// GPU:  nvvm.mbarrier.try_wait.parity
// LLVM: llvm.byval = !llvm.array<128 x i8>
// PTX:  .param .align 64 .b8 {{.+}}[128]
// PTX:  cp.async.bulk.tensor.2d.shared::cluster.global
// PTX:  mbarrier.try_wait.parity
// PTX:  cp.async.bulk.tensor.2d.shared::cluster.global
func.func @product(%x: tensor<128x512xbf16>, %w: tensor<512x256xbf16>, %out: tensor<128x256xf32>)
    -> tensor<128x256xf32> attributes {tile_graph.kernel, tile_graph.copy_stages = 4 : i64, tile_graph.reduction_step = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (128) step (128) shared_outs(%o = %out) -> (tensor<128x256xf32>) {
    %a = tensor.extract_slice %x[%i, 0] [128, 512] [1, 1] : tensor<128x512xbf16> to tensor<128x512xbf16>
    %e = tensor.empty() : tensor<128x256xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %w : tensor<128x512xbf16>, tensor<512x256xbf16>) outs(%f : tensor<128x256xf32>) {
    ^bb0(%l: bf16, %h: bf16, %s: f32):
      %l32 = arith.extf %l : bf16 to f32
      %h32 = arith.extf %h : bf16 to f32
      %t = arith.mulf %l32, %h32 : f32
      %u = arith.addf %s, %t : f32
      linalg.yield %u : f32
    } -> tensor<128x256xf32>
    %d = tensor.extract_slice %o[%i, 0] [128, 256] [1, 1] : tensor<128x256xf32> to tensor<128x256xf32>
    %y = linalg.copy ins(%p : tensor<128x256xf32>) outs(%d : tensor<128x256xf32>) -> tensor<128x256xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [128, 256] [1, 1] : tensor<128x256xf32> into tensor<128x256xf32>
    }
  }
  return %r : tensor<128x256xf32>
}
