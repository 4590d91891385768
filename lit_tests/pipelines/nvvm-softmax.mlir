// Softmax of rows in one kernel: a warp has a row in its registers, and its lanes combine
// maxima and sums by shuffles.
// RUN: device-code --target nvvm:sm_80 --emit gpu %s | filecheck %s
// RUN: device-code --target nvvm:sm_80 --emit llvm %s | filecheck --check-prefix=LLVM %s
// RUN: device-code --target nvvm:sm_80 %s | filecheck --check-prefix=PTX %s
// RUN: device-code --target nvvm:sm_90a %s | filecheck --check-prefix=PTX90 %s

// CHECK:         gpu.launch_func @softmax_kernel::@softmax_kernel blocks in (%c8, %c1, %c1) threads in (%c256, %c1, %c1) args(
// CHECK-LABEL: gpu.func @softmax_kernel(
// CHECK-NOT:     gpu.dynamic_shared_memory
// CHECK-NOT:     gpu.barrier
// CHECK-DAG:     memref.alloca() : memref<1x4x4xf32, #gpu.address_space<private>>
// The maximum: of each thread, of its warp in five rounds, and then everyone has it.
// CHECK:         arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         llvm.call_intrinsic "llvm.exp2.f32"
// The sum likewise.
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         arith.divf
// CHECK-NOT:     gpu.barrier

// LLVM-LABEL:  llvm.func @softmax_kernel(
// LLVM-COUNT-10: nvvm.shfl.sync bfly
// LLVM-NOT:      nvvm.barrier

// PTX:         .visible .entry softmax_kernel(
// PTX-NOT:     .local
// PTX:         max.NaN.f32
// PTX:         shfl.sync.bfly
// PTX:         ex2.approx.f32
// PTX:         div.rn.f32
// PTX90:       .target sm_90a
// PTX90:       shfl.sync.bfly

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func private @softmax(%x: tensor<64x512xf32>, %out0: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %r = scf.forall (%i) = (0) to (64) step (8) shared_outs(%o = %out0) -> (tensor<64x512xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [8, 512] [1, 1] : tensor<64x512xf32> to tensor<8x512xf32>
    %e1 = tensor.empty() : tensor<8xf32>
    %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
    %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<8x512xf32>) outs(%low : tensor<8xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.maximumf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %e = tensor.empty() : tensor<8x512xf32>
    %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %max : tensor<8x512xf32>, tensor<8xf32>) outs(%e : tensor<8x512xf32>) {
    ^bb0(%p: f32, %m: f32, %u: f32):
      %0 = arith.subf %p, %m : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8x512xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<8x512xf32>) outs(%none : tensor<8xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %d = tensor.extract_slice %o[%i, 0] [8, 512] [1, 1] : tensor<64x512xf32> to tensor<8x512xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<8x512xf32>, tensor<8xf32>) outs(%d : tensor<8x512xf32>) {
    ^bb0(%p: f32, %t: f32, %u: f32):
      %0 = arith.divf %p, %t : f32
      linalg.yield %0 : f32
    } -> tensor<8x512xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [8, 512] [1, 1] : tensor<8x512xf32> into tensor<64x512xf32>
    }
  }
  return %r : tensor<64x512xf32>
}
