// RUN: magweld-opt --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(map-tiles-to-threads{threads=16 subgroup=8})" %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Neighbouring threads take neighbouring elements: 8 along a row, strided.
// CHECK-LABEL: func.func @elementwise(
// CHECK:           scf.forall (%[[R:.+]], %[[T:.+]]) in (2, 8) {
// CHECK:             %[[X:.+]] = memref.subview %{{.+}}[%[[R]], %[[T]]] [2, 4] [2, 8]
// CHECK:             %[[Y:.+]] = memref.subview %{{.+}}[%[[R]], %[[T]]] [2, 4] [2, 8]
// CHECK:             linalg.exp ins(%[[X]] : {{.+}}) outs(%[[Y]] :
// CHECK:           } {mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]}
func.func @elementwise(%x: memref<4x32xf32>, %out: memref<4x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.exp ins(%x : memref<4x32xf32>) outs(%out : memref<4x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// The output of a contraction is shared in squares; what works on it follows.
// CHECK-LABEL: func.func @contraction(
// CHECK:           %[[ACC:.+]] = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
// CHECK:           scf.forall (%[[I:.+]], %[[J:.+]]) in (4, 4)
// CHECK:             %[[F:.+]] = memref.subview %[[ACC]][%[[I]], %[[J]]] [2, 2] [4, 4]
// CHECK:             linalg.fill ins(%{{.+}}) outs(%[[F]] :
// CHECK:           scf.forall (%[[I:.+]], %[[J:.+]]) in (4, 4)
// CHECK-DAG:         %[[A:.+]] = memref.subview %{{.+}}[%[[I]], 0] [2, 16] [4, 1]
// CHECK-DAG:         %[[B:.+]] = memref.subview %{{.+}}[0, %[[J]]] [16, 2] [1, 4]
// CHECK-DAG:         %[[C:.+]] = memref.subview %[[ACC]][%[[I]], %[[J]]] [2, 2] [4, 4]
// CHECK:             linalg.matmul ins(%[[A]], %[[B]] : {{.+}}) outs(%[[C]] :
// CHECK:           scf.forall (%[[I:.+]], %[[J:.+]]) in (4, 4)
// CHECK:             memref.subview %[[ACC]][%[[I]], %[[J]]] [2, 2] [4, 4]
// CHECK:             linalg.exp
func.func @contraction(%a: memref<8x16xf32>, %b: memref<16x8xf32>, %out: memref<8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %acc = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
    linalg.fill ins(%zero : f32) outs(%acc : memref<8x8xf32, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %b : memref<8x16xf32>, memref<16x8xf32>) outs(%acc : memref<8x8xf32, #gpu.address_space<workgroup>>)
    linalg.exp ins(%acc : memref<8x8xf32, #gpu.address_space<workgroup>>) outs(%out : memref<8x8xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Each thread reduces what it owns into a register; the 8 lanes of a row combine these,
// and the first of them writes the sum, which begins with what a fill has put there: the
// fill is gone.
// CHECK-LABEL: func.func @row_sum(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<2x32xf32>, %[[SUM:[a-z0-9]+]]: memref<2xf32>
// CHECK:           %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-NOT:       memref.alloc()
// CHECK:           %[[OWN:.+]] = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
// CHECK:           %[[ALL:.+]] = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
// CHECK-NEXT:      scf.forall (%[[R:.+]], %[[T:.+]]) in (2, 8) {
// CHECK:             %[[ELEMENTS:.+]] = memref.subview %[[X]][%[[R]], %[[T]]] [1, 4] [2, 8]
// CHECK:             %[[NEUTRAL:.+]] = arith.constant -0.000000e+00 : f32
// CHECK:             linalg.fill ins(%[[NEUTRAL]] : f32) outs(%[[OWN]] :
// CHECK:             linalg.generic {{.+}} ins(%[[ELEMENTS]] : {{.+}}) outs(%[[OWN]] :
// CHECK:             %[[S:.+]] = memref.subview %[[SUM]][%[[R]]] [1] [2]
// CHECK:             linalg.fill ins(%[[ZERO]] : f32) outs(%[[ALL]] :
// CHECK:             linalg.generic {{.+}} ins(%[[OWN]] : {{.+}}) outs(%[[ALL]] : {{.+}}) attrs = {tile_graph.subgroup_reduction = 8 : i64}
// CHECK:               arith.addf
// CHECK:             linalg.generic {{.+}} ins(%[[ALL]] : {{.+}}) outs(%[[S]] : {{.+}}) attrs = {tile_graph.subgroup_reduction = 8 : i64}
// CHECK-NOT:       scf.forall
// CHECK:         return
func.func @row_sum(%x: memref<2x32xf32>, %sum: memref<2xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    linalg.fill ins(%zero : f32) outs(%sum : memref<2xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x32xf32>) outs(%sum : memref<2xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Two subgroups have a row: the first lane of each writes to a slot, and one thread
// merges them.
// CHECK-DAG:     #[[GROUP:.+]] = affine_map<(d0) -> (d0 floordiv 8)>
// CHECK-LABEL: func.func @long_row(
// CHECK:           %[[SLOTS:.+]] = memref.alloc() : memref<1x2xi32, #gpu.address_space<workgroup>>
// CHECK:           scf.forall (%[[T:.+]]) in (16) {
// CHECK:             %[[G:.+]] = affine.apply #[[GROUP]](%[[T]])
// CHECK:             %[[SLOT:.+]] = memref.subview %[[SLOTS]][0, %[[G]]] [1, 1] [1, 1]
// CHECK:             linalg.generic {{.+}}tile_graph.subgroup_reduction = 8 : i64
// CHECK:             linalg.generic {{.+}} outs(%[[SLOT]] : {{.+}}tile_graph.subgroup_reduction = 8 : i64
// CHECK:           scf.forall (%{{.+}}) in (1) {
// CHECK-NEXT:        linalg.generic {{.+}} ins(%[[SLOTS]] :
// CHECK:               arith.maxsi
func.func @long_row(%x: memref<1x64xi32>, %most: memref<1xi32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1x64xi32>) outs(%most : memref<1xi32>) {
    ^bb0(%p: i32, %acc: i32):
      %0 = arith.maxsi %p, %acc : i32
      linalg.yield %0 : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Twelve threads fill no second subgroup, and lanes do not exchange doubles: each thread
// writes a partial result, and up to eight of a row one thread merges.
// CHECK-LABEL: func.func @ragged_row_sum(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<2x18xf32>, %[[SUM:[a-z0-9]+]]: memref<2xf32>
// CHECK:           %[[PARTIAL:.+]] = memref.alloc() : memref<2x6xf32, #gpu.address_space<workgroup>>
// CHECK:           scf.forall (%[[R:.+]], %[[T:.+]]) in (2, 6) {
// CHECK:             %[[OWN:.+]] = memref.subview %[[X]][%[[R]], %[[T]]] [1, 3] [2, 6]
// CHECK:             %[[P:.+]] = memref.subview %[[PARTIAL]][%[[R]], %[[T]]] [1, 1] [2, 6]
// CHECK:             %[[NEUTRAL:.+]] = arith.constant -0.000000e+00 : f32
// CHECK:             linalg.fill ins(%[[NEUTRAL]] : f32) outs(%[[P]] :
// CHECK:             linalg.generic {{.+}} ins(%[[OWN]] : {{.+}}) outs(%[[P]] :
// CHECK:           scf.forall (%[[R:.+]]) in (2) {
// CHECK:             %[[ALL:.+]] = memref.subview %[[PARTIAL]][%[[R]], 0] [1, 6] [2, 1]
// CHECK:             %[[S:.+]] = memref.subview %[[SUM]][%[[R]]] [1] [2]
// CHECK:             linalg.generic {{.+}} ins(%[[ALL]] : {{.+}}) outs(%[[S]] :
// CHECK:               arith.addf
// CHECK-LABEL: func.func @doubles(
// CHECK-NOT:       tile_graph.subgroup_reduction
func.func @ragged_row_sum(%x: memref<2x18xf32>, %sum: memref<2xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x18xf32>) outs(%sum : memref<2xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
func.func @doubles(%x: memref<2x32xf64>, %sum: memref<2xf64>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x32xf64>) outs(%sum : memref<2xf64>) {
    ^bb0(%p: f64, %acc: f64):
      %0 = arith.addf %p, %acc : f64
      linalg.yield %0 : f64
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0, 0)>

// A dimension of the result that no loop indexes is one of extent one of the partials.
// CHECK-DAG:     #[[PARTIALS:.+]] = affine_map<(d0, d1) -> (d0, 0, d1)>
// CHECK-DAG:     #[[RESULT:.+]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @kept_dimension(
// CHECK:           %[[PARTIAL:.+]] = memref.alloc() : memref<2x1x6xf32, #gpu.address_space<workgroup>>
// CHECK:           scf.forall (%[[R:.+]], %[[T:.+]]) in (2, 6) {
// CHECK:             memref.subview %[[PARTIAL]][%[[R]], 0, %[[T]]] [1, 1, 1] [2, 1, 6]
// CHECK:           scf.forall (%[[R:.+]]) in (2) {
// CHECK:             linalg.generic {indexing_maps = [#[[PARTIALS]], #[[RESULT]]]
func.func @kept_dimension(%x: memref<2x18xf32>, %sum: memref<2x1xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x18xf32>) outs(%sum : memref<2x1xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A reduction without a known combiner is done by one thread a row.
// CHECK-LABEL: func.func @last_of_row(
// CHECK:           scf.forall (%[[R:.+]]) in (2) {
// CHECK:             memref.subview %{{.+}}[%[[R]], 0] [1, 32] [2, 1]
func.func @last_of_row(%x: memref<2x32xf32>, %last: memref<2xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x32xf32>) outs(%last : memref<2xf32>) {
    ^bb0(%p: f32, %acc: f32):
      linalg.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0) -> (d0)>

// An index counts in the whole tile, not in the slice.
// CHECK-DAG: #[[WHOLE:.+]] = affine_map<(d0, d1) -> (d0 * 16 + d1)>
// CHECK-LABEL: func.func @index(
// CHECK:           scf.forall (%[[T:.+]]) in (16)
// CHECK:             linalg.generic
// CHECK:               %[[LOCAL:.+]] = linalg.index 0 : index
// CHECK:               %[[I:.+]] = affine.apply #[[WHOLE]](%[[LOCAL]], %[[T]])
// CHECK:               linalg.yield %[[I]] : index
func.func @index(%out: memref<32xindex>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%out : memref<32xindex>) {
    ^bb0(%u: index):
      %i = linalg.index 0 : index
      linalg.yield %i : index
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// A window starts where its thread's output does; in the slice its steps are those of
// all threads: 2 along the height, 8 along the width. The output is shared, the points of the window are not.
// CHECK-DAG: #[[ROWS:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4 + d2 * 4, d5 + d3 * 16)>
// CHECK-DAG: #[[START:map[0-9]*]] = affine_map<(d0) -> (d0 * 2)>
// CHECK-LABEL: func.func @pooling(
// CHECK:           scf.forall (%[[H:.+]], %[[W:.+]]) in (2, 8) {
// CHECK-DAG:         %[[Y:.+]] = affine.apply #[[START]](%[[H]])
// CHECK-DAG:         %[[X:.+]] = affine.apply #[[START]](%[[W]])
// CHECK:             %[[OWN:.+]] = memref.subview %{{.+}}[0, 0, %[[Y]], %[[X]]] [1, 1, 15, 3] [1, 1, 1, 1]
// CHECK:             %[[OUT:.+]] = memref.subview %{{.+}}[0, 0, %[[H]], %[[W]]] [1, 1, 4, 1] [1, 1, 2, 8]
// CHECK:             linalg.generic {indexing_maps = [#[[ROWS]], #{{.+}}, #{{.+}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%[[OWN]], %{{.+}} outs(%[[OUT]] :
// CHECK:               arith.maximumf
func.func @pooling(%x: memref<1x1x17x17xf32>, %w: memref<3x3xf32>, %out: memref<1x1x8x8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : memref<1x1x17x17xf32>, memref<3x3xf32>) outs(%out : memref<1x1x8x8xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// The loops of a depthwise convolution end with the channels, its output with the width:
// threads are numbered along the output, as those of its fill are.
// CHECK-LABEL: func.func @depthwise(
// CHECK:           scf.forall (%[[C:.+]], %[[W:.+]]) in (4, 4) {
// CHECK:             memref.subview %{{.+}}[0, %[[C]], 0, %[[W]]] [1, 1, 1, 2] [1, 4, 1, 4]
// CHECK:             linalg.fill
// CHECK:           scf.forall (%[[C2:.+]], %[[W2:.+]]) in (4, 4) {
// CHECK:             memref.subview %{{.+}}[0, %[[C2]], 0, %[[W2]]] [1, 1, 1, 2] [1, 4, 1, 4]
// CHECK:             linalg.generic
func.func @depthwise(%x: memref<1x4x3x10xf32>, %w: memref<4x3x3xf32>, %zero: f32, %out: memref<1x4x1x8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %sums = memref.alloc() : memref<1x4x1x8xf32, #gpu.address_space<workgroup>>
    linalg.fill ins(%zero : f32) outs(%sums : memref<1x4x1x8xf32, #gpu.address_space<workgroup>>)
    linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x4x3x10xf32>, memref<4x3x3xf32>) outs(%sums : memref<1x4x1x8xf32, #gpu.address_space<workgroup>>)
    linalg.copy ins(%sums : memref<1x4x1x8xf32, #gpu.address_space<workgroup>>) outs(%out : memref<1x4x1x8xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// Who reads a copy across its rows is shared by the rows that are written; who reads it
// along them follows the copy.
// CHECK-LABEL: func.func @transposed(
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (2, 8)
// CHECK:             linalg.copy
// CHECK:           scf.forall (%[[I:.+]], %[[J:.+]]) in (2, 8)
// CHECK-DAG:         memref.subview %[[TILE:.+]][%[[J]], %[[I]]] [1, 8] [8, 2]
// CHECK-DAG:         memref.subview %{{.+}}[%[[I]], %[[J]]] [8, 1] [2, 8]
// CHECK:             linalg.transpose
// CHECK-LABEL: func.func @along(
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (2, 8)
// CHECK:             linalg.copy
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (2, 8)
// CHECK:             linalg.exp
func.func @transposed(%x: memref<8x16xf32>, %out: memref<16x8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : memref<8x16xf32, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<8x16xf32>) outs(%t : memref<8x16xf32, #gpu.address_space<workgroup>>)
    linalg.transpose ins(%t : memref<8x16xf32, #gpu.address_space<workgroup>>) outs(%out : memref<16x8xf32>) permutation = [1, 0]
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
func.func @along(%x: memref<8x16xf32>, %out: memref<8x16xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : memref<8x16xf32, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<8x16xf32>) outs(%t : memref<8x16xf32, #gpu.address_space<workgroup>>)
    linalg.exp ins(%t : memref<8x16xf32, #gpu.address_space<workgroup>>) outs(%out : memref<8x16xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// Twelve threads would have three neighbours in four rows of 36 bytes; nine have a row,
// and touch fewer sectors. Rows of whole sectors are shared by as many as there are.
// CHECK-LABEL: func.func @odd_rows(
// CHECK:           scf.forall (%[[T:.+]]) in (9) {
// CHECK:             memref.subview %{{.+}}[0, %[[T]]] [8, 1] [1, 9]
// CHECK:             linalg.exp
// CHECK-LABEL: func.func @even_rows(
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (2, 8) {
// CHECK:             linalg.exp
func.func @odd_rows(%x: memref<8x9xf32>, %out: memref<8x9xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.exp ins(%x : memref<8x9xf32>) outs(%out : memref<8x9xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
func.func @even_rows(%x: memref<8x24xf32>, %out: memref<8x24xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.exp ins(%x : memref<8x24xf32>) outs(%out : memref<8x24xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A tile that a reduction reads keeps its threads: it may stay in their registers.
// CHECK-LABEL: func.func @odd_rows_in_registers(
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (4, 3) {
// CHECK:             linalg.exp
// CHECK:           scf.forall (%{{.+}}, %{{.+}}) in (4, 3) {
// CHECK:             linalg.generic
func.func @odd_rows_in_registers(%x: memref<8x9xf32>, %out: memref<8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : memref<8x9xf32, #gpu.address_space<workgroup>>
    linalg.exp ins(%x : memref<8x9xf32>) outs(%t : memref<8x9xf32, #gpu.address_space<workgroup>>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : memref<8x9xf32, #gpu.address_space<workgroup>>) outs(%out : memref<8xf32>) {
    ^bb0(%p: f32, %acc: f32):
      %0 = arith.addf %p, %acc : f32
      linalg.yield %0 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

#mirror = affine_map<(d0, d1) -> (-d0 + d1 + 7)>
#out = affine_map<(d0, d1) -> (d0)>
#points = affine_map<(d0, d1) -> (d1)>

// An index that falls: slices start where the last of 8 threads reads first.
// CHECK-DAG: #[[LOCAL:.+]] = affine_map<(d0, d1) -> (d1 - d0 * 8)>
// CHECK-DAG: #[[START:.+]] = affine_map<(d0) -> (-d0 + 7)>
// CHECK-LABEL: func.func @mirrored(
// CHECK:           scf.forall (%[[T:.+]]) in (8) {
// CHECK:             %[[FROM:.+]] = affine.apply #[[START]](%[[T]])
// CHECK:             memref.subview %{{.+}}[%[[FROM]]] [3] [1]
// CHECK:             linalg.generic {indexing_maps = [#[[LOCAL]], #{{.+}}, #{{.+}}]
func.func @mirrored(%x: memref<10xf32>, %w: memref<3xf32>, %out: memref<8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    linalg.generic {indexing_maps = [#mirror, #points, #out], iterator_types = ["parallel", "reduction"]} ins(%x, %w : memref<10xf32>, memref<3xf32>) outs(%out : memref<8xf32>) {
    ^bb0(%p: f32, %q: f32, %acc: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %0, %acc : f32
      linalg.yield %1 : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

func.func @spilled(%out: memref<8xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    // expected-error @+1 {{'memref.alloc' op is a temporary in global memory}}
    %t = memref.alloc() : memref<8xf32>
    linalg.exp ins(%t : memref<8xf32>) outs(%out : memref<8xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
