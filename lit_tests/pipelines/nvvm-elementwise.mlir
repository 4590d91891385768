// An element-wise chain becomes one pass over memory: no shared memory, no barrier.
// RUN: device-code --target nvvm:sm_80 --emit gpu %s | filecheck %s
// RUN: device-code --target nvvm:sm_80 --emit llvm %s | filecheck --check-prefix=LLVM %s
// RUN: device-code --target nvvm:sm_80 %s | filecheck --check-prefix=PTX %s
// RUN: device-code --target nvvm:sm_90a %s | filecheck --check-prefix=PTX90 %s

// CHECK:         gpu.launch_func @chain_kernel::@chain_kernel blocks in (%c16, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-LABEL: gpu.func @chain_kernel(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<64x512xf32>
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     gpu.barrier
// CHECK:         %[[THREAD:.+]] = gpu.thread_id x
// A thread has two pieces of four neighbours.
// CHECK:         memref.reinterpret_cast %[[X]] to offset: [%{{.+}}], sizes: [1, 2, 4], strides: [512, 256, 1]
// CHECK:         vector.load %{{.+}} {alignment = 16 : i64}
// CHECK:         llvm.call_intrinsic "llvm.exp2.f32"
// CHECK:         vector.store %{{.+}} {alignment = 16 : i64}

// LLVM-LABEL:  llvm.func @chain_kernel(%{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr {llvm.noalias})
// LLVM-SAME:       nvvm.kernel
// LLVM:          nvvm.read.ptx.sreg.ctaid.x
// LLVM:          nvvm.read.ptx.sreg.tid.x

// PTX:         .target sm_80
// PTX-NOT:     .shared
// PTX:         .visible .entry chain_kernel(
// PTX:         .maxntid 256, 1, 1
// PTX-NEXT:    .minnctapersm 2
// PTX-NOT:     bar.sync
// PTX:         ld.global.nc.v4.b32
// PTX:         ex2.approx.f32
// PTX:         st.global.v4.b32
// PTX90:       .target sm_90a
// PTX90:       .visible .entry chain_kernel(

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// silu(x + b) in two operations.
func.func private @chain(%x: tensor<64x512xf32>, %b: tensor<512xf32>, %out0: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {tile_graph.kernel} {
  %one = arith.constant 1.0 : f32
  %r = scf.forall (%i) = (0) to (64) step (4) shared_outs(%o = %out0) -> (tensor<64x512xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [4, 512] [1, 1] : tensor<64x512xf32> to tensor<4x512xf32>
    %e = tensor.empty() : tensor<4x512xf32>
    %a = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %b : tensor<4x512xf32>, tensor<512xf32>) outs(%e : tensor<4x512xf32>) {
    ^bb0(%p: f32, %q: f32, %u: f32):
      %0 = arith.addf %p, %q : f32
      linalg.yield %0 : f32
    } -> tensor<4x512xf32>
    %d = tensor.extract_slice %o[%i, 0] [4, 512] [1, 1] : tensor<64x512xf32> to tensor<4x512xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x512xf32>) outs(%d : tensor<4x512xf32>) {
    ^bb0(%p: f32, %u: f32):
      %0 = arith.negf %p : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %1, %one : f32
      %3 = arith.divf %p, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<4x512xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [4, 512] [1, 1] : tensor<4x512xf32> into tensor<64x512xf32>
    }
  }
  return %r : tensor<64x512xf32>
}
