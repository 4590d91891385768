// What is read across the rows of a tile is copied to explicit memory, row by row: the
// plan has a place for it, and kernels make the copy.
//
// RUN: magweld-opt --plan-execution --split-input-file %s | filecheck %s
// RUN: magweld-opt --plan-execution --lower-subgraphs --split-input-file %s | filecheck %s --check-prefix=LOWERED

#device = #tile_graph.device<"gpu", [
  #tile_graph.level<"global", 0, 0, 900.0, 32, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 4096, 9000.0, 128, 80, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 65536, 90000.0, 4, 80, "explicit", 0.0, 0>
], 80, 256, 32, 128, 15000.0, [], []>
#same = affine_map<(d0, d1) -> (d0, d1)>
#across = affine_map<(d0, d1) -> (d1, d0)>

// The exponential is made in the nest of the sum, which reads one tensor across its rows
// and the other along them. The result goes out from registers.
//
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME:      %[[X:.+]]: tensor<64x32xf32>, %[[Y:.+]]: tensor<32x64xf32>
// CHECK:         %[[A:.+]] = "tile_graph.load"(%[[X]], %{{.+}}) {moved = 1024 : i64, {{.*}}sizes = [32, 8]
// CHECK-NEXT:    %[[T:.+]] = "tile_graph.allocate"() {place = #tile_graph.place<"shared", 0 : i64, 1024 : i64, 64 : i64>} : () -> tensor<32x8xf32>
// CHECK-NEXT:    %[[C:.+]] = "tile_graph.compute"() ({
// CHECK-NEXT:      linalg.copy {{.*}}ins(%[[A]] : tensor<32x8xf32>) outs(%[[T]] :
// CHECK:         }) {op_name = "exp"}
// CHECK-NEXT:    %[[B:.+]] = "tile_graph.load"(%[[Y]], %{{.+}}) {moved = 1024 : i64, {{.*}}sizes = [8, 32]
// CHECK-NEXT:    %[[R:.+]] = "tile_graph.allocate"() : () -> tensor<8x32xf32>
// CHECK-NEXT:    "tile_graph.barrier"
// CHECK-NEXT:    "tile_graph.compute"() ({
// CHECK:           linalg.generic {{.+}} ins(%[[C]], %[[B]] :
// CHECK:         "tile_graph.release"(%[[T]])
// CHECK:         }) {extents = [32, 64], footprint = 1024 : i64
//
// LOWERED-LABEL: func.func private @kernel_0(
// LOWERED:         %[[A:.+]] = tensor.extract_slice %{{.+}} [32, 8] [1, 1] : tensor<64x32xf32> to tensor<32x8xf32>
// LOWERED:         %[[E:.+]] = tensor.empty() : tensor<32x8xf32>
// LOWERED:         %[[C:.+]] = linalg.copy {{.*}}ins(%[[A]] : tensor<32x8xf32>) outs(%[[E]] :
// LOWERED:         linalg.generic {{.+}} ins(%[[C]], %{{.+}} :
func.func @transposed(%x: tensor<64x32xf32>, %y: tensor<32x64xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<64x32xf32>
      %r = linalg.exp ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>)
          -> tensor<64x32xf32>
      gpu.yield %r : tensor<64x32xf32>
    }) {op_name = "exp"} : () -> tensor<64x32xf32>
    %1 = "tile_graph.connect"(%0) {level = "shared"} : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %2 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<32x64xf32>
      %r = linalg.generic {indexing_maps = [#across, #same, #same],
                           iterator_types = ["parallel", "parallel"]}
          ins(%1, %y : tensor<64x32xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<32x64xf32>
      gpu.yield %r : tensor<32x64xf32>
    }) {op_name = "sum"} : () -> tensor<32x64xf32>
    gpu.yield %2 : tensor<32x64xf32>
  }) {subgraph_name = "sums", level = "shared", tile = #tile_graph.tile<[8, 32]>,
      footprint = 1024} : () -> tensor<32x64xf32>
  return %out : tensor<32x64xf32>
}

// -----

#device = #tile_graph.device<"gpu", [
  #tile_graph.level<"global", 0, 0, 900.0, 32, 1, "explicit", 0.0, 0>,
  #tile_graph.level<"shared", 1, 4096, 9000.0, 128, 80, "explicit", 0.0, 0>,
  #tile_graph.level<"register", 2, 65536, 90000.0, 4, 80, "explicit", 0.0, 0>
], 80, 256, 32, 128, 15000.0, [], []>

// A tile that takes one element of each row is as well read where it is, and so is one
// for which there is no room.
//
// CHECK-LABEL: func.func @column(
// CHECK-NOT:     linalg.copy
// CHECK-NOT:     place
// CHECK-LABEL: func.func @large(
// CHECK-NOT:     linalg.copy
// CHECK-NOT:     place
// CHECK:         return
//
// LOWERED-NOT: linalg.copy
func.func @column(%x: tensor<64x32xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<32x64xf32>
      %r = linalg.transpose ins(%x : tensor<64x32xf32>) outs(%e : tensor<32x64xf32>)
          permutation = [1, 0]
      gpu.yield %r : tensor<32x64xf32>
    }) {op_name = "transpose"} : () -> tensor<32x64xf32>
    gpu.yield %0 : tensor<32x64xf32>
  }) {subgraph_name = "rows", level = "shared", tile = #tile_graph.tile<[1, 64]>}
      : () -> tensor<32x64xf32>
  return %out : tensor<32x64xf32>
}
func.func @large(%x: tensor<64x32xf32>) -> tensor<32x64xf32>
    attributes {tile_graph.device = #device} {
  %out = "tile_graph.subgraph"() ({
    %0 = "tile_graph.operator"() ({
      %e = tensor.empty() : tensor<32x64xf32>
      %r = linalg.transpose ins(%x : tensor<64x32xf32>) outs(%e : tensor<32x64xf32>)
          permutation = [1, 0]
      gpu.yield %r : tensor<32x64xf32>
    }) {op_name = "transpose"} : () -> tensor<32x64xf32>
    gpu.yield %0 : tensor<32x64xf32>
  }) {subgraph_name = "all", level = "shared", tile = #tile_graph.tile<[32, 64]>}
      : () -> tensor<32x64xf32>
  return %out : tensor<32x64xf32>
}
