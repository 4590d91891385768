// RUN: magweld-opt --expand-winograd --verify-diagnostics %s

func.func @planned(%x: memref<1x24x10x10xf32>, %w: memref<32x24x3x3xf32>, %t: memref<2x16x25x16xf32>, %y: memref<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x32x8x8xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  // expected-error @below {{expected 25600 bytes at #tile_graph.place<"l2", 0 : i64, 64 : i64, 64 : i64>}}
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, magweld.winograd_weights = 2 : i64, tile_graph.beside = {transformed = #tile_graph.place<"l2", 0, 64, 64>}, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x24x10x10xf32>, memref<32x24x3x3xf32>) outs(%y : memref<1x32x8x8xf32>)
  return
}
