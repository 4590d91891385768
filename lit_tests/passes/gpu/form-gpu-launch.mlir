// RUN: magweld-opt --pass-pipeline="builtin.module(form-gpu-launch{threads=64 subgroup=32},canonicalize,cse)" %s | filecheck %s

// The grid is that of the block loop. Sixteen of the 64 threads have work; all of
// them meet the barrier.
// CHECK-LABEL: func.func @kernel(
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[C12:.+]] = arith.constant 12 : index
// CHECK-DAG:     %[[C64:.+]] = arith.constant 64 : index
// CHECK-DAG:     %[[BYTES:.+]] = arith.constant 128 : i32
// CHECK:         gpu.launch blocks({{[^)]+}}) in (%{{[a-z0-9]+}} = %[[C12]], %{{[a-z0-9]+}} = %[[C1]], %{{[a-z0-9]+}} = %[[C1]])
// CHECK-SAME:        threads({{[^)]+}}) in (%{{[a-z0-9]+}} = %[[C64]], %{{[a-z0-9]+}} = %[[C1]], %{{[a-z0-9]+}} = %[[C1]])
// CHECK-SAME:        dynamic_shared_memory_size %[[BYTES]]
// CHECK:           %[[BLOCK:.+]] = gpu.block_id x
// CHECK:           %[[THREAD:.+]] = gpu.thread_id x
// CHECK:           %[[WORKS:.+]] = arith.cmpi ult, %[[THREAD]], %{{.+}} : index
// CHECK:           scf.if %[[WORKS]] {
// CHECK:             linalg.fill
// CHECK:           }
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       scf.forall
func.func @kernel(%v: f32, %x: memref<12x16xf32>) attributes {magweld.shared_bytes = 128 : i64, tile_graph.kernel} {
  scf.forall (%n) in (12) {
    scf.forall (%i) in (16) {
      %s = memref.subview %x[%n, %i] [1, 1] [1, 16] : memref<12x16xf32> to memref<1x1xf32, strided<[16, 16], offset: ?>>
      linalg.fill ins(%v : f32) outs(%s : memref<1x1xf32, strided<[16, 16], offset: ?>>)
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
