// RUN: not magweld-opt --split-input-file --form-gpu-launch %s 2>&1 | filecheck %s

// CHECK: error: {{.*}}expected the attribute magweld.shared_bytes
func.func @no_bytes(%v: f32, %x: memref<12x64xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (12) {
    %s = memref.subview %x[%n, 0] [1, 1] [1, 1] : memref<12x64xf32> to memref<1x1xf32, strided<[64, 1], offset: ?>>
    linalg.fill ins(%v : f32) outs(%s : memref<1x1xf32, strided<[64, 1], offset: ?>>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
