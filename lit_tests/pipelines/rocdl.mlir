// The same kernels for AMD: wavefronts of 64 threads, local data share, fences.
// RUN: device-code --target rocdl:gfx942 --emit llvm %S/nvvm-matmul.mlir | filecheck %s
// RUN: device-code --target rocdl:gfx942 %S/nvvm-softmax.mlir | filecheck --check-prefix=SOFTMAX %s
// RUN: device-code --target rocdl:gfx942 %S/nvvm-matmul.mlir | filecheck --check-prefix=MATMUL %s
// RUN: device-code --target rocdl:gfx942 %S/nvvm-elementwise.mlir | filecheck --check-prefix=CHAIN %s

// CHECK:       llvm.mlir.global external @__dynamic_shmem__{{[0-9]+}}() {addr_space = 3 : i32, alignment = 16 : i64}
// CHECK-LABEL: llvm.func @linear_kernel(
// CHECK-SAME:      rocdl.kernel
// CHECK:         rocdl.workgroup.id.x
// CHECK:         rocdl.workitem.id.x
// CHECK:         llvm.fence syncscope("workgroup") release
// CHECK-NEXT:    rocdl.s.barrier
// CHECK-NEXT:    llvm.fence syncscope("workgroup") acquire

// SOFTMAX:     softmax_kernel:
// SOFTMAX-NOT: scratch_
// SOFTMAX-NOT: s_barrier
// SOFTMAX:     ds_bpermute_b32
// SOFTMAX:     v_exp_f32
// SOFTMAX:     s_endpgm
// SOFTMAX:     .amdhsa_kernel softmax_kernel
// SOFTMAX:     .max_flat_workgroup_size: 256

// MATMUL:      linear_kernel:
// MATMUL-NOT:  scratch_
// MATMUL:      s_barrier
// MATMUL:      ds_write
// MATMUL:      s_barrier
// MATMUL:      ds_read2_b32
// MATMUL:      v_mfma_f32_16x16x4_f32
// MATMUL:      s_endpgm

// CHAIN:       chain_kernel:
// CHAIN-NOT:   s_barrier
// CHAIN:       global_load_dword
// CHAIN:       v_exp_f32
// CHAIN:       global_store_dword
