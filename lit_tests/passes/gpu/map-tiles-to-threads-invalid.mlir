// RUN: not magweld-opt --map-tiles-to-threads %s 2>&1 | filecheck %s

// CHECK: 'linalg.pooling_nchw_max' indexes a dimension by 'd2 * 2 + d4', not by a single loop
// CHECK-SAME: [gpu-index-expression]; hint: such operators are computed by a library
func.func @pooling(%x: memref<1x4x9x9xf32>, %w: memref<3x3xf32>, %out: memref<1x4x4x4xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : memref<1x4x9x9xf32>, memref<3x3xf32>) outs(%out : memref<1x4x4x4xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
