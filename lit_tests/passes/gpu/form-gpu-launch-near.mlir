// RUN: magweld-opt --pass-pipeline="builtin.module(form-gpu-launch{threads=64 subgroup=32},canonicalize,cse)" %s | filecheck %s

// A kernel without tiles in shared memory asks for none. Where all threads have work, none
// asks whether it has.
// CHECK-LABEL: func.func @no_shared(
// CHECK:         gpu.launch blocks
// CHECK-NOT:     dynamic_shared_memory_size
// CHECK-NOT:     scf.if
// CHECK:           linalg.fill
// CHECK:         return
func.func @no_shared(%v: f32, %x: memref<12x64xf32>) attributes {magweld.shared_bytes = 0 : i64, tile_graph.kernel} {
  scf.forall (%n) in (12) {
    scf.forall (%i) in (64) {
      %s = memref.subview %x[%n, %i] [1, 1] [1, 1] : memref<12x64xf32> to memref<1x1xf32, strided<[64, 1], offset: ?>>
      linalg.fill ins(%v : f32) outs(%s : memref<1x1xf32, strided<[64, 1], offset: ?>>)
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What is no kernel keeps its loops.
// CHECK-LABEL: func.func @host(
// CHECK-NOT:     gpu.launch
// CHECK:         scf.forall
// CHECK:         return
func.func @host(%v: f32, %x: memref<12x64xf32>) {
  scf.forall (%n) in (12) {
    %s = memref.subview %x[%n, 0] [1, 64] [1, 1] : memref<12x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    linalg.fill ins(%v : f32) outs(%s : memref<1x64xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
