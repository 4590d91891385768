// Tiles that the threads of a GPU stream: each thread moves about 128 bytes, and keeps
// what two loop nests read.
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Two operands and a result: 16 elements are 192 bytes, 32 would be 384.
// CHECK-LABEL: func.func @add(
// CHECK:         predicted_seconds = 1.5{{[0-9]+}}E-4
// CHECK-SAME:    tile = #tile_graph.tile<[1, 4096]>
func.func @add(%x: tensor<8192x4096xf32>, %y: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
  %e = tensor.empty() : tensor<8192x4096xf32>
  %r = linalg.add ins(%x, %y : tensor<8192x4096xf32>, tensor<8192x4096xf32>) outs(%e : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  return %r : tensor<8192x4096xf32>
}

// A block has no more rows than make 32 elements a thread: the second nest has them in
// registers.
// CHECK-LABEL: func.func @minus_sum(
// CHECK:         tile = #tile_graph.tile<[1, 4096]>
func.func @minus_sum(%x: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  %s = linalg.reduce ins(%x : tensor<8192x4096xf32>) outs(%f : tensor<8192xf32>) dimensions = [1] (%p: f32, %q: f32) {
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  %d = tensor.empty() : tensor<8192x4096xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<8192x4096xf32>, tensor<8192xf32>) outs(%d : tensor<8192x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<8192x4096xf32>
  return %r : tensor<8192x4096xf32>
}

// A sum alone reads its rows once: a thread has 32 elements of two of them.
// CHECK-LABEL: func.func @sum(
// CHECK:         tile = #tile_graph.tile<[2]>
func.func @sum(%x: tensor<8192x4096xf32>) -> tensor<8192xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  %s = linalg.reduce ins(%x : tensor<8192x4096xf32>) outs(%f : tensor<8192xf32>) dimensions = [1] (%p: f32, %q: f32) {
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  return %s : tensor<8192xf32>
}
