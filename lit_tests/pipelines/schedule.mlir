// From linalg to tiled kernels through the whole list of passes: a linear layer whose
// weight is transposed, a softmax, and a second product by a library.
//
// RUN: magweld-opt --compile-to=scheduled --device=v100 %s | filecheck --check-prefix=SCHEDULED %s
// RUN: magweld-opt --compile-to=tiled --device=v100 %s | filecheck --check-prefix=TILED %s

// The layer and the softmax are one kernel, whose tiles are rows; every edge in it is in
// shared memory. The second product is too large for all caches, and left to a library: the device
// states no rates of one.
//
// SCHEDULED-LABEL: func.func @main
// SCHEDULED-SAME:    (%[[X:.+]]: tensor<512x8xf32>, %[[W:.+]]: tensor<128x8xf32>, %[[B:.+]]: tensor<128xf32>, %[[V:.+]]: tensor<128x131072xf32>)
// SCHEDULED-NEXT:  %[[S:.+]] = "tile_graph.subgraph"() ({
// SCHEDULED-NOT:   "tile_graph.subgraph"
// SCHEDULED-NOT:   refused
// SCHEDULED:         linalg.matmul indexing_maps = {{.+}} ins(%[[X]], %[[W]] :
// SCHEDULED:         {implementation = "generated", op_name = "matmul_0", tile = #tile_graph.tile<[8, 128]>}
// SCHEDULED-NEXT:    "tile_graph.connect"(%{{.+}}) {level = "shared"}
// SCHEDULED:         op_name = "generic_0", tile = #tile_graph.tile<[8, 128]>
// SCHEDULED:         op_name = "generic_1", tile = #tile_graph.tile<[8]>
// SCHEDULED:         op_name = "generic_4", tile = #tile_graph.tile<[8, 128]>
// SCHEDULED:       implementation = "generated", level = "shared"
// SCHEDULED-SAME:    recompute = 1.0
// SCHEDULED-SAME:    reduction_step = 8
// SCHEDULED-SAME:    tile = #tile_graph.tile<[8, 128]>, traffic_after = 283136 : i64, traffic_before = 2388480 : i64
// SCHEDULED-NEXT:  %[[C:.+]] = "tile_graph.connect"(%[[S]]) {level = "global", refused = "library: matmul_1 is a library call"}
// SCHEDULED-NEXT:  %[[R:.+]] = "tile_graph.subgraph"() ({
// SCHEDULED:         linalg.matmul ins(%[[C]], %[[V]] :
// SCHEDULED:         {implementation = "library", op_name = "matmul_1"
// SCHEDULED:       return %[[R]]

// Nothing of the graph is left: two calls, one buffer between them in the arena.
//
// TILED-NOT:     tile_graph.operator"
// TILED-NOT:     tile_graph.connect
// TILED-LABEL: func.func @main
// TILED-SAME:    (%[[X:.+]]: tensor<512x8xf32>, %[[W:.+]]: tensor<128x8xf32>, %[[B:.+]]: tensor<128xf32>, %[[V:.+]]: tensor<128x131072xf32>)
// TILED-SAME:    {magweld.arena_bytes = 262144 : i64, magweld.transient_bytes = 0 : i64}
// TILED-NEXT:    %[[T:.+]] = tensor.empty() {magweld.offset = 0 : i64, magweld.place = "arena"}
// TILED-NEXT:    %[[S:.+]] = call @kernel_0(%[[X]], %[[W]], %[[B]], %[[T]])
// TILED-SAME:      tile_graph.operators = ["matmul_0", "generic_0", "generic_1", "generic_2", "generic_3", "generic_4"]
// TILED-NEXT:    %[[O:.+]] = tensor.empty() {magweld.place = "output"}
// TILED-NEXT:    %[[R:.+]] = call @library_0(%[[S]], %[[V]], %[[O]])
// TILED-NEXT:    return %[[R]]
// TILED-LABEL: func.func private @kernel_0
// TILED:         scf.forall (%[[I:.+]]) = (0) to (512) step (8)
// TILED:           linalg.matmul {{.+}} -> tensor<8x128xf32>
// TILED:           math.exp
// TILED:           tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[I]], 0] [8, 128] [1, 1]
// TILED-NOT:   func.func private @kernel_1
// TILED:       func.func private @library_0(tensor<512x128xf32>, tensor<128x131072xf32>, tensor<512x131072xf32>)
// TILED-NOT:   "tile_graph.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<512x8xf32>, %w: tensor<128x8xf32>, %b: tensor<128xf32>,
    %v: tensor<128x131072xf32>) -> tensor<512x131072xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %e1 = tensor.empty() : tensor<512xf32>
  %et = tensor.empty() : tensor<8x128xf32>
  %wt = linalg.transpose ins(%w : tensor<128x8xf32>) outs(%et : tensor<8x128xf32>)
    permutation = [1, 0]
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>)
    -> tensor<512x128xf32>
  %product = linalg.matmul ins(%x, %wt : tensor<512x8xf32>, tensor<8x128xf32>)
    outs(%init : tensor<512x128xf32>) -> tensor<512x128xf32>
  %linear = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%product, %b : tensor<512x128xf32>, tensor<128xf32>)
    outs(%e : tensor<512x128xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<512x128xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<512xf32>) -> tensor<512xf32>
  %max = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%linear : tensor<512x128xf32>) outs(%low : tensor<512xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %m = arith.maximumf %p, %acc : f32
    linalg.yield %m : f32
  } -> tensor<512xf32>
  // A dimension of extent one, as eager programs keep it, hides the maximum.
  %kept = tensor.expand_shape %max [[0, 1]] output_shape [512, 1]
    : tensor<512xf32> into tensor<512x1xf32>
  %exp = linalg.generic {
      indexing_maps = [#id, affine_map<(i, j) -> (i, 0)>, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%linear, %kept : tensor<512x128xf32>, tensor<512x1xf32>)
    outs(%e : tensor<512x128xf32>) {
  ^bb0(%p: f32, %m: f32, %u: f32):
    %d = arith.subf %p, %m : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<512x128xf32>
  %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%exp : tensor<512x128xf32>) outs(%none : tensor<512xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  %softmax = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<512x128xf32>, tensor<512xf32>)
    outs(%e : tensor<512x128xf32>) {
  ^bb0(%p: f32, %s: f32, %u: f32):
    %d = arith.divf %p, %s : f32
    linalg.yield %d : f32
  } -> tensor<512x128xf32>
  %er = tensor.empty() : tensor<512x131072xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<512x131072xf32>)
    -> tensor<512x131072xf32>
  %r = linalg.matmul ins(%softmax, %v : tensor<512x128xf32>, tensor<128x131072xf32>)
    outs(%fr : tensor<512x131072xf32>) -> tensor<512x131072xf32>
  return %r : tensor<512x131072xf32>
}
