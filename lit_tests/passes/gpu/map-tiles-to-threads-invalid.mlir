// RUN: not magweld-opt --map-tiles-to-threads %s 2>&1 | filecheck %s

#half = affine_map<(d0) -> (d0 floordiv 2)>
#id = affine_map<(d0) -> (d0)>

// CHECK: 'linalg.generic' indexes a dimension by 'd0 floordiv 2'
// CHECK-SAME: [gpu-index-expression]; hint: such operators are computed by a library
func.func @twice(%x: memref<4xf32>, %out: memref<8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#half, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%out : memref<8xf32>) {
    ^bb0(%p: f32, %q: f32):
      linalg.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
