// relu(a b + bias) in one kernel: operands are staged in shared memory step by step,
// the tile of the result stays in registers until it is stored.
// RUN: device-code --target nvvm:sm_80 --emit gpu %s | filecheck %s
// RUN: device-code --target nvvm:sm_80 --emit llvm %s | filecheck --check-prefix=LLVM %s
// RUN: device-code --target nvvm:sm_80 %s | filecheck --check-prefix=PTX %s
// RUN: device-code --target nvvm:sm_90a %s | filecheck --check-prefix=PTX90 %s

// CHECK:         gpu.launch_func @linear_kernel::@linear_kernel blocks in (%c12, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %c8192_i32
// CHECK-LABEL: gpu.func @linear_kernel(
// CHECK:         %[[SHARED:.+]] = gpu.dynamic_shared_memory
// CHECK:         %[[A:.+]] = memref.view %[[SHARED]][%{{.+}}][] : {{.+}} to memref<64x16xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[B:.+]] = memref.view %[[SHARED]][%{{.+}}][] : {{.+}} to memref<16x64xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[ACC:.+]] = memref.alloca() : memref<4x4xf32, #gpu.address_space<private>>
// CHECK:         scf.for
// CHECK:           gpu.barrier
// CHECK:           %[[OWN_A:.+]] = memref.reinterpret_cast %[[A]] to
// CHECK:           vector.store %{{.+}}, %[[OWN_A]][
// CHECK:           %[[OWN_B:.+]] = memref.reinterpret_cast %[[B]] to
// CHECK:           vector.store %{{.+}}, %[[OWN_B]][
// CHECK:           gpu.barrier
// CHECK:           arith.mulf %{{.+}}, %{{.+}} fastmath<contract>
// CHECK:           memref.store %{{.+}}, %[[ACC]]
// CHECK:         }
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.load %[[ACC]]
// CHECK:         arith.maximumf

// LLVM:        llvm.mlir.global external @__dynamic_shmem__
// LLVM-LABEL:  llvm.func @linear_kernel(
// LLVM-COUNT-2:  nvvm.barrier

// PTX:         .extern .shared .align 16 .b8
// PTX:         .visible .entry linear_kernel(
// PTX-NOT:     .local
// PTX:         bar.sync 0;
// PTX:         st.shared
// PTX:         bar.sync 0;
// PTX:         ld.shared.v4.b32
// PTX-COUNT-256: fma.rn.f32
// PTX:         st.global.b32
// PTX90:       .target sm_90a
// PTX90-COUNT-2: bar.sync 0;

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

func.func private @linear(%a: tensor<256x128xf32>, %b: tensor<128x192xf32>, %bias: tensor<192xf32>, %out0: tensor<256x192xf32>) -> tensor<256x192xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i, %j) = (0, 0) to (256, 192) step (64, 64) shared_outs(%o = %out0) -> (tensor<256x192xf32>) {
    %sa = tensor.extract_slice %a[%i, 0] [64, 128] [1, 1] : tensor<256x128xf32> to tensor<64x128xf32>
    %sb = tensor.extract_slice %b[0, %j] [128, 64] [1, 1] : tensor<128x192xf32> to tensor<128x64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %mm = linalg.matmul ins(%sa, %sb : tensor<64x128xf32>, tensor<128x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
    %sbias = tensor.extract_slice %bias[%j] [64] [1] : tensor<192xf32> to tensor<64xf32>
    %d = tensor.extract_slice %o[%i, %j] [64, 64] [1, 1] : tensor<256x192xf32> to tensor<64x64xf32>
    %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%mm, %sbias : tensor<64x64xf32>, tensor<64xf32>) outs(%d : tensor<64x64xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      %1 = arith.maximumf %0, %zero : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<256x192xf32>
    }
  }
  return %r : tensor<256x192xf32>
}
