// RUN: magweld-opt --expand-winograd --canonicalize %s | filecheck %s

// An image of 8 x 8 results: four rows of four tiles, 16 products for each tile.
//
// CHECK-DAG:   #[[PIXEL:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2 * 2 + 3, d3 * 2 + 1)>
// CHECK-DAG:   #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2 * 2 + 1, d3 * 2)>
// CHECK-DAG:   #[[U:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG:   #[[V:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG:   #[[M:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @even(
// CHECK-SAME:      %[[X:.+]]: memref<1x24x10x10xf32>, %[[W:.+]]: memref<32x24x3x3xf32>, %[[T:.+]]: memref<2x16x25x16xf32>, %[[Y:.+]]: memref<1x32x8x8xf32>)
// Layers are an odd number of cache lines apart: 25 and 17 lines of 16 elements.
// One has the place that the plan names, where that is known.
// CHECK:         memref.alloc() {alignment = 64 : i64, tile_graph.place = #tile_graph.place<"l2", 128 : i64, 25600 : i64, 64 : i64>} : memref<6400xf32>
// CHECK-NEXT:    memref.reinterpret_cast {{.*}} to memref<16x24x1x4x4xf32, strided<[400, 16, 16, 4, 1]>>
// CHECK:         memref.alloc() {{.*}} : memref<4352xf32>
// CHECK-NEXT:    memref.reinterpret_cast {{.*}} to memref<16x16x1x4x4xf32, strided<[272, 16, 16, 4, 1]>>
// CHECK-NOT:     scf.if
// CHECK:         linalg.generic {indexing_maps = [{{.*}}#[[PIXEL]]{{.*}}]{{.*}}} ins(%[[X]], %[[X]],
// The blocks of sixteen rows, one after the other.
// CHECK:         scf.for
// CHECK:           linalg.generic {indexing_maps = [#[[U]], #[[V]], #[[M]]]{{.*}}} ins(%{{.+}}, %{{.+}} : memref<16x24x16xf32, {{.+}}>, memref<16x24x16xf32, {{.+}}>) outs(%{{.+}} : memref<16x16x16xf32, {{.+}}>)
// CHECK:           linalg.generic {indexing_maps = [{{.*}}#[[RESULT]]{{.*}}]
// The sum of all results times zero is no number where one of them is not finite.
// CHECK:         linalg.generic {{.*}}iterator_types = ["reduction", "reduction", "reduction", "reduction"]
// CHECK:         arith.cmpf uno
// CHECK:         scf.if
// CHECK:           linalg.generic {{.*}}ins(%[[X]], %[[W]] : {{.*}}outs(%[[Y]] : {{.*}}magweld.registers
// Nothing is added there for the border, the first and the last row and column.
// CHECK:             %[[SUM:.+]] = arith.addf
// CHECK:             %[[H:.+]] = linalg.index 2
// CHECK:             %[[I:.+]] = linalg.index 5
// CHECK:             %[[ROW:.+]] = arith.addi %[[H]], %[[I]]
// CHECK:             %[[MOVED:.+]] = arith.subi %[[ROW]], %c1
// CHECK:             %[[IN_ROWS:.+]] = arith.cmpi ult, %[[MOVED]], %c8
// CHECK:             %[[ONE:.+]] = arith.select %[[IN_ROWS]], %[[SUM]], %[[U:.+]] : f32
// CHECK:             linalg.index 3
// CHECK:             linalg.index 6
// CHECK:             %[[IN_COLUMNS:.+]] = arith.cmpi ult, %{{.+}}, %c8
// CHECK:             %[[TWO:.+]] = arith.select %[[IN_COLUMNS]], %[[ONE]], %[[U]] : f32
// CHECK:             linalg.yield %[[TWO]]
func.func @even(%x: memref<1x24x10x10xf32>, %w: memref<32x24x3x3xf32>, %t: memref<2x16x25x16xf32>, %y: memref<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x32x8x8xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, magweld.winograd_weights = 2 : i64, tile_graph.beside = {transformed = #tile_graph.place<"l2", 128, 25600, 64>}, tile_graph.interior = {low = array<i64: 0, 0, 1, 1>, sizes = array<i64: 1, 24, 8, 8>, whole = array<i64: 1, 24, 10, 10>}, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x24x10x10xf32>, memref<32x24x3x3xf32>) outs(%y : memref<1x32x8x8xf32>)
  return
}

// Where tiles do not divide the result they lie in larger buffers, 7 x 5 in 8 x 6.
//
// CHECK-LABEL: func.func @odd(
// CHECK-SAME:      %[[X:.+]]: memref<1x24x9x7xf32>
// CHECK:         memref.alloc() {{.*}} : memref<1x24x10x8xf32>
// CHECK:         memref.copy %[[X]], %{{.+}}
// CHECK:         memref.alloc() {{.*}} : memref<1x16x8x6xf32>
// CHECK:         memref.copy %{{.+}}, %{{.+}} : memref<1x16x7x5xf32, {{.+}}> to memref<1x16x7x5xf32>
// No border: everything is added.
// CHECK:         scf.if
// CHECK-NOT:       linalg.index
// CHECK:         return
func.func @odd(%x: memref<1x24x9x7xf32>, %w: memref<16x24x3x3xf32>, %t: memref<1x16x25x16xf32>, %y: memref<1x16x7x5xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x16x7x5xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, magweld.winograd_weights = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x24x9x7xf32>, memref<16x24x3x3xf32>) outs(%y : memref<1x16x7x5xf32>)
  return
}

// What adds to something is left as it is.
// CHECK-LABEL: func.func @accumulates(
// CHECK-SAME:      magweld.remarks = ["no Winograd: the result does not start at zero"]
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
func.func @accumulates(%x: memref<1x24x10x10xf32>, %w: memref<16x24x3x3xf32>, %t: memref<1x16x25x16xf32>, %y: memref<1x16x8x8xf32>) attributes {tile_graph.kernel} {
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, magweld.winograd_weights = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x24x10x10xf32>, memref<16x24x3x3xf32>) outs(%y : memref<1x16x8x8xf32>)
  return
}

// Without transformed weights they are transformed here, 16 rows of 128 channels at a
// time, of which 32 are brought side by side.
//
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:      %{{.+}}: memref<1x256x10x10xf32>, %[[W:.+]]: memref<32x256x3x3xf32>, %{{.+}}: memref<1x32x8x8xf32>)
// CHECK:         scf.for %[[ROW:.+]] = %{{.+}} to %{{.+}} step %{{.+}} {
// CHECK:           scf.for %[[CHANNEL:.+]] = %{{.+}} to %c256 step %c128 {
// CHECK:             scf.for %{{.+}} = %{{.+}} to %c128 step %c32 {
// CHECK:               memref.subview %[[W]]{{.+}} [16, 32, 3, 3]
// CHECK:               linalg.generic {{{.*}}} ins(%{{.+}} : memref<16x32x3x3xf32, {{.+}}>) outs(%{{.+}} : memref<32x3x3x16xf32>)
// CHECK:               linalg.generic
// CHECK:             }
// CHECK:             linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : memref<16x128x16xf32, {{.+}}>, memref<16x128x16xf32, {{.+}}>) outs(%{{.+}} : memref<16x16x16xf32, {{.+}}>)
func.func @in_place(%x: memref<1x256x10x10xf32>, %w: memref<32x256x3x3xf32>, %y: memref<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x32x8x8xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : memref<1x256x10x10xf32>, memref<32x256x3x3xf32>) outs(%y : memref<1x32x8x8xf32>)
  return
}

// The image is a part of a tile that is larger than what the plan speaks of, so nothing
// tells where its border is.
//
// CHECK-LABEL: func.func @part_of_another(
// CHECK-SAME:      magweld.remarks = ["no Winograd: the image is no part of a known tile"]
// CHECK:         linalg.conv_2d_nchw_fchw {dilations
func.func @part_of_another(%x: memref<1x24x12x12xf32>, %w: memref<32x24x3x3xf32>, %y: memref<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %part = memref.subview %x[0, 0, 1, 1] [1, 24, 10, 10] [1, 1, 1, 1] : memref<1x24x12x12xf32> to memref<1x24x10x10xf32, strided<[3456, 144, 12, 1], offset: 13>>
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x32x8x8xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, tile_graph.interior = {low = array<i64: 0, 0, 1, 1>, sizes = array<i64: 1, 24, 8, 8>, whole = array<i64: 1, 24, 10, 10>}, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%part, %w : memref<1x24x10x10xf32, strided<[3456, 144, 12, 1], offset: 13>>, memref<32x24x3x3xf32>) outs(%y : memref<1x32x8x8xf32>)
  return
}

// Rows of the tile from its third on; the first one that is no border is the second.
//
// CHECK-LABEL: func.func @moved(
// CHECK:         %[[H:.+]] = linalg.index 2
// CHECK:         %[[I:.+]] = linalg.index 5
// CHECK:         %[[ROW:.+]] = arith.addi %[[H]], %[[I]]
// CHECK:         %[[MOVED:.+]] = arith.addi %[[ROW]], %c1
// CHECK:         arith.cmpi ult, %[[MOVED]], %c10
func.func @moved(%x: memref<1x24x12x10xf32>, %w: memref<32x24x3x3xf32>, %y: memref<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %part = memref.subview %x[0, 0, 2, 0] [1, 24, 10, 10] [1, 1, 1, 1] : memref<1x24x12x10xf32> to memref<1x24x10x10xf32, strided<[2880, 120, 10, 1], offset: 20>>
  linalg.generic {indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%y : memref<1x32x8x8xf32>) {
  ^bb0(%u: f32):
    linalg.yield %zero : f32
  }
  linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, tile_graph.interior = {low = array<i64: 0, 0, 1, 1>, sizes = array<i64: 1, 24, 10, 8>, whole = array<i64: 1, 24, 12, 10>}, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%part, %w : memref<1x24x10x10xf32, strided<[2880, 120, 10, 1], offset: 20>>, memref<32x24x3x3xf32>) outs(%y : memref<1x32x8x8xf32>)
  return
}
