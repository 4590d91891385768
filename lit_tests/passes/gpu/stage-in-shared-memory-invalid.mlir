// RUN: not magweld-opt --stage-in-shared-memory %s 2>&1 | filecheck %s

// CHECK: 'tensor.pad' in a tile has no GPU lowering
// CHECK-SAME: [gpu-tile-operation]; hint: let a library compute this operator
func.func @padded(%x: tensor<8x8xf32>, %out: tensor<10x8xf32>) -> tensor<10x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<10x8xf32>) {
    %p = tensor.pad %x low[1, 0] high[1, 0] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<8x8xf32> to tensor<10x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [10, 8] [1, 1] : tensor<10x8xf32> into tensor<10x8xf32>
    }
  }
  return %r : tensor<10x8xf32>
}
