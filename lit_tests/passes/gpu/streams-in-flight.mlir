// RUN: magweld-opt --pass-pipeline="builtin.module(map-tiles-to-blocks,lower-register-streams{matrix=mma has-async-copies=1 has-warpgroups=1})" %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(map-tiles-to-blocks,lower-register-streams{matrix=mma has-async-copies=1 has-warpgroups=1 bulk-capacity=8224})" %s | filecheck %s --check-prefix=BOXES
// RUN: magweld-opt --pass-pipeline="builtin.module(map-tiles-to-blocks,lower-register-streams{matrix=mma has-async-copies=1 has-warpgroups=1 bulk-capacity=8223})" %s | filecheck %s

// Three blocks of 16 keys, and 64 queries of one warpgroup. The product with values of a
// block is under way while weights of the next block are made: its sums are waited for
// in the next iteration, and scaled and weights rounded then. Values are copied a block
// later than keys.
//
// CHECK-LABEL: func.func private @kernel_0(
// CHECK:         nvgpu.device_async_copy %{{.+}} : memref<1x1x48x64xf16> to
// CHECK-NOT:     nvgpu.device_async_copy
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         nvgpu.device_async_copy
// CHECK:         nvgpu.device_async_copy
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         nvvm.cp.async.wait.group 1
// CHECK:         nvvm.fence.proxy
// CHECK-NEXT:    gpu.barrier
// CHECK:         llvm.inline_asm has_side_effects {{.*}}m64n16k16
// CHECK:         llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK:         scf.for
// CHECK-NEXT:      llvm.extractvalue
// CHECK:           llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK:           arith.mulf
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-NEXT:      nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.if
// CHECK:             nvgpu.device_async_copy
// CHECK:           scf.if
// CHECK:             nvgpu.device_async_copy
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           llvm.inline_asm has_side_effects {{.*}}m64n16k16
// CHECK:           llvm.inline_asm has_side_effects {{.*}}m64n64k16
// CHECK:           llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 1;
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK-NOT:       llvm.inline_asm
// CHECK:           scf.yield
// CHECK:         llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK:         llvm.inline_asm has_side_effects {{.*}}m64n64k16
// CHECK:         llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK:         vector.store
// CHECK:         gpu.terminator

// With room for the mbarriers of both rings one thread begins to copy blocks as boxes of
// 16 rows. In the loop threads wait for keys, and for the values of the block before.
//
// BOXES-LABEL: func.func private @kernel_0(
// BOXES-SAME:    magweld.tensor_maps = [{argument = 1 : i64, box = array<i64: 1, 1, 16, 64>, swizzle = 128 : i64}, {argument = 2 : i64, box = array<i64: 1, 1, 16, 64>, swizzle = 128 : i64}]
// BOXES-COUNT-4: nvvm.mbarrier.init
// BOXES-NOT:     nvvm.mbarrier.init
// BOXES:         nvvm.fence.proxy
// BOXES-NEXT:    gpu.barrier
// BOXES:         nvvm.mbarrier.arrive.expect_tx
// BOXES:         nvvm.cp.async.bulk.tensor.shared.cluster.global
// BOXES:         nvvm.mbarrier.try_wait.parity
// BOXES-NEXT:    gpu.barrier
// BOXES:         scf.for
// BOXES-COUNT-2:   nvvm.mbarrier.try_wait.parity
// BOXES-NEXT:      gpu.barrier
// BOXES:           scf.if
// BOXES:             nvvm.cp.async.bulk.tensor.shared.cluster.global
// BOXES:           scf.if
// BOXES:             nvvm.cp.async.bulk.tensor.shared.cluster.global
// BOXES-NOT:     nvgpu.device_async_copy

#left = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#right = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#across = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

func.func private @kernel_0(%q: tensor<1x1x64x64xf16>, %k: tensor<1x1x48x64xf16>, %v: tensor<1x1x48x64xf16>, %o: tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    attributes {tile_graph.copy_stages = 2 : i64,
      tile_graph.footprint = 8192 : i64,
      tile_graph.kernel,
      tile_graph.level = "shared",
      tile_graph.reduction_step = 64 : i64,
      tile_graph.stream_step = 16 : i64,
      tile_graph.subgroup_rows = 16 : i64,
      tile_graph.tile = #tile_graph.tile<[1, 1, 64, 64]>} {
  %0 = scf.forall (%t) in (1) shared_outs(%out = %o) -> (tensor<1x1x64x64xf32>) {
    %zero = arith.constant 0.000000e+00 : f32
    %half = arith.constant 5.000000e-01 : f32
    %1 = tensor.empty() : tensor<1x1x64x64xf32>
    %2 = linalg.fill ins(%zero : f32) outs(%1 : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %3 = scf.for %at = %c0 to %c48 step %c16 iter_args(%sums = %2) -> (tensor<1x1x64x64xf32>) {
      %keys = tensor.extract_slice %k[0, 0, %at, 0] [1, 1, 16, 64] [1, 1, 1, 1] : tensor<1x1x48x64xf16> to tensor<1x1x16x64xf16>
      %4 = tensor.empty() : tensor<1x1x64x16xf32>
      %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
      %scores = linalg.generic {indexing_maps = [#left, #right, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%q, %keys : tensor<1x1x64x64xf16>, tensor<1x1x16x64xf16>)
        outs(%5 : tensor<1x1x64x16xf32>) {
      ^bb0(%a: f16, %b: f16, %c: f32):
        %6 = arith.extf %a : f16 to f32
        %7 = arith.extf %b : f16 to f32
        %8 = arith.mulf %6, %7 : f32
        %9 = arith.addf %c, %8 : f32
        linalg.yield %9 : f32
      } -> tensor<1x1x64x16xf32>
      %scaled = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%sums : tensor<1x1x64x64xf32>) {
      ^bb0(%c: f32):
        %6 = arith.mulf %c, %half : f32
        linalg.yield %6 : f32
      } -> tensor<1x1x64x64xf32>
      %raised = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%scores : tensor<1x1x64x16xf32>)
        outs(%4 : tensor<1x1x64x16xf32>) {
      ^bb0(%a: f32, %c: f32):
        %6 = math.exp %a : f32
        linalg.yield %6 : f32
      } -> tensor<1x1x64x16xf32>
      %10 = tensor.empty() : tensor<1x1x64x16xf16>
      %weights = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%raised : tensor<1x1x64x16xf32>)
        outs(%10 : tensor<1x1x64x16xf16>) {
      ^bb0(%a: f32, %c: f16):
        %7 = arith.truncf %a : f32 to f16
        linalg.yield %7 : f16
      } -> tensor<1x1x64x16xf16>
      %values = tensor.extract_slice %v[0, 0, %at, 0] [1, 1, 16, 64] [1, 1, 1, 1] : tensor<1x1x48x64xf16> to tensor<1x1x16x64xf16>
      %next = linalg.generic {indexing_maps = [#left, #across, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%weights, %values : tensor<1x1x64x16xf16>, tensor<1x1x16x64xf16>)
        outs(%scaled : tensor<1x1x64x64xf32>) {
      ^bb0(%a: f16, %b: f16, %c: f32):
        %6 = arith.extf %a : f16 to f32
        %7 = arith.extf %b : f16 to f32
        %8 = arith.mulf %6, %7 : f32
        %9 = arith.addf %c, %8 : f32
        linalg.yield %9 : f32
      } -> tensor<1x1x64x64xf32>
      scf.yield %next : tensor<1x1x64x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %out[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<1x1x64x64xf32>
    }
  }
  return %0 : tensor<1x1x64x64xf32>
}
