// RUN: magweld-opt --tile-for-registers --vectorize --canonicalize --cse %s | filecheck %s
// RUN: magweld-opt --pass-pipeline='builtin.module(tile-for-registers{vector-bits=256 vector-registers=16},vectorize{vector-bits=256 vector-registers=16},canonicalize,cse)' %s | filecheck %s --check-prefix=NARROW

#id = affine_map<(d0) -> (d0)>
#row = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#per_row = affine_map<(d0, d1) -> (d0)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// 197 elements: three register tiles of four vectors, then 4 lanes and a scalar.
// CHECK-LABEL: func.func @odd_extent(
// CHECK-SAME:      %[[X:.+]]: memref<197xf32>, %[[Y:.+]]: memref<197xf32>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C64:.+]] = arith.constant 64 : index
// CHECK-DAG:     %[[C192:.+]] = arith.constant 192 : index
// CHECK-DAG:     %[[C196:.+]] = arith.constant 196 : index
// CHECK:         scf.for %[[I:.+]] = %[[C0]] to %[[C192]] step %[[C64]] {
// CHECK-COUNT-4:   vector.store %{{.+}}, %[[Y]][%{{.+}}] : memref<197xf32>, vector<16xf32>
// CHECK:         }
// CHECK:         %[[FOUR:.+]] = vector.load %[[X]][%[[C192]]] : memref<197xf32>, vector<4xf32>
// CHECK:         vector.store %{{.+}}, %[[Y]][%[[C192]]] : memref<197xf32>, vector<4xf32>
// CHECK:         memref.load %[[X]][%[[C196]]]
// CHECK:         memref.store %{{.+}}, %[[Y]][%[[C196]]]
// CHECK-NOT:     linalg
func.func @odd_extent(%x: memref<197xf32>, %y: memref<197xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<197xf32>) outs(%y : memref<197xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// Partial sums in vectors, one tree over the lanes at the end.
// CHECK-LABEL: func.func @row_sum(
// CHECK:         %[[NEUTRAL:.+]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK:         scf.for
// CHECK:           %[[TOTAL:.+]] = memref.load
// CHECK:           %[[SUMS:.+]]:4 = scf.for {{.+}} iter_args(%{{.+}} = %[[NEUTRAL]],
// CHECK-COUNT-4:     arith.addf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK:             scf.yield
// CHECK:           vector.shuffle {{.+}} [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK:           %[[SUM:.+]] = arith.addf %[[TOTAL]], %{{.+}} : f32
// CHECK:           memref.store %[[SUM]]
func.func @row_sum(%x: memref<16x384xf32>, %y: memref<16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #per_row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<16x384xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %p, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// 12 x 2 accumulators travel through the reduction loop in registers. Two vectors of
// columns stay there in each step, the elements of the rows come one at a time.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME:      %[[X:.+]]: memref<12x64xf32>, %[[Y:.+]]: memref<64x32xf32>,
// CHECK-DAG:     %[[LEFT:.+]] = memref.reinterpret_cast %[[X]]
// CHECK-DAG:     %[[RIGHT:.+]] = memref.reinterpret_cast %[[Y]]
// CHECK:         %{{.+}}:24 = scf.for {{.+}} iter_args
// CHECK:           memref.load %[[LEFT]]
// CHECK:           vector.load %[[RIGHT]]
// CHECK:           arith.mulf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK:           vector.load %[[RIGHT]]
// CHECK:           arith.mulf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK-NOT:       vector.load
// CHECK:           memref.load %[[LEFT]]
// CHECK-COUNT-2:   arith.mulf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK:           memref.load %[[LEFT]]
// CHECK-COUNT-20:  arith.mulf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK:           scf.yield
// CHECK-COUNT-24: vector.store
func.func @matmul(%x: memref<12x64xf32>, %y: memref<64x32xf32>, %z: memref<12x32xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<12x64xf32>, memref<64x32xf32>) outs(%z : memref<12x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// While a panel of 64 columns is multiplied, what the next one is copied from is fetched:
// in each step a line of some columns, others for each row of register tiles.
// CHECK-LABEL: func.func @panels(
// CHECK-SAME:      %{{.+}}: memref<48x64xf32>, %[[W:.+]]: memref<128x64xf32>,
// CHECK:         %[[FLAT:.+]] = memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [8192], strides: [1]
// CHECK:         scf.for %[[COLUMN:.+]] =
// CHECK-NOT:       arith.select
// CHECK:           scf.for %[[ROW:.+]] = %c0 to %c48 step %c6 {
// CHECK-DAG:         %[[TURN:.+]] = arith.divui %[[ROW]], %c6
// CHECK-DAG:         %[[WANTED:.+]] = arith.muli %[[TURN]], %c8
// CHECK:             arith.minui %[[WANTED]], %c56
// CHECK:             scf.for
// CHECK-COUNT-8:       memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
// CHECK-NOT:           memref.prefetch
// Copies of panels have the width of the registers as well.
// NARROW-LABEL: func.func @panels(
// NARROW:         vector.shuffle
// NARROW-NOT:     vector<16xf32>
func.func @panels(%x: memref<48x64xf32>, %w: memref<128x64xf32>, %z: memref<48x128xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<48x64xf32>, memref<128x64xf32>) outs(%z : memref<48x128xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Behind the last columns of a block of the reduction come the first ones of the next.
// CHECK-LABEL: func.func @panels_of_blocks(
// CHECK:         scf.for
// CHECK:           %[[END:.+]] = arith.cmpi uge, %{{.+}}, %c128
// CHECK:           arith.select %[[END]]
// CHECK:             memref.prefetch
func.func @panels_of_blocks(%x: memref<48x64xf32>, %w: memref<128x64xf32, strided<[192, 1]>>, %z: memref<48x128xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<48x64xf32>, memref<128x64xf32, strided<[192, 1]>>) outs(%z : memref<48x128xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// NARROW-LABEL: func.func @panels_of_blocks(
// While eight rows are multiplied, those of the next block are fetched: in sixteen steps,
// the elements of a line, a line of each of as many rows.
// CHECK-LABEL: func.func @rows_of_elements(
// CHECK-SAME:      %[[W:.+]]: memref<64x256xf32>, %{{.+}}: memref<256x48xf32>,
// CHECK:         %[[FLAT:.+]] = memref.reinterpret_cast %[[W]] to offset: [0], sizes: [16384], strides: [1]
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c64 step %c8 {
// CHECK:           %[[FIRST:.+]] = arith.muli %[[ROW]], %c256
// CHECK:           scf.for %[[STEP:.+]] = %c0 to %c256 step %c1
// CHECK:             %[[TURN:.+]] = arith.andi %[[STEP]], %c15
// CHECK:             %[[DOWN:.+]] = arith.muli %[[TURN]], %c255
// CHECK:             %[[MOVED:.+]] = arith.addi %[[STEP]], %[[DOWN]]
// CHECK:             %[[NEXT:.+]] = arith.addi %[[FIRST]], %[[MOVED]]
// CHECK:             %[[AT:.+]] = arith.addi %[[NEXT]], %c2048
// CHECK:             memref.prefetch %[[FLAT]][%[[AT]]], read, locality<2>, data
// CHECK-NOT:         memref.prefetch
// NARROW-LABEL: func.func @rows_of_elements(
// NARROW:         memref.prefetch {{.+}} : memref<16384xf32
func.func @rows_of_elements(%w: memref<64x256xf32>, %x: memref<256x48xf32>, %z: memref<64x48xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x256xf32>, memref<256x48xf32>) outs(%z : memref<64x48xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Behind the last rows of a block of the reduction come the first ones of its next block.
// CHECK-LABEL: func.func @rows_of_blocks(
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c64 step %c8 {
// CHECK:           %[[END:.+]] = arith.cmpi uge, %[[ROW]], %c56
// CHECK:           arith.select %[[END]]
// CHECK:             memref.prefetch
// NARROW-LABEL: func.func @rows_of_blocks(
func.func @rows_of_blocks(%w: memref<64x256xf32, strided<[512, 1]>>, %x: memref<256x48xf32>, %z: memref<64x48xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x256xf32, strided<[512, 1]>>, memref<256x48xf32>) outs(%z : memref<64x48xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// One row by columns that lie along the reduction: in one step half of the next four
// columns fetch the first line of a pair, in the next step the other half.
// CHECK-LABEL: func.func @one_row(
// CHECK-SAME:      %{{.+}}: memref<1x256xf32>, %[[W:.+]]: memref<64x256xf32>,
// CHECK:         %[[FLAT:.+]] = memref.reinterpret_cast %[[W]] to offset: [0], sizes: [16384], strides: [1]
// CHECK:         scf.for %[[COLUMN:.+]] = %c0 to %c64 step %c4 {
// CHECK:           scf.for %[[STEP:.+]] = %c0 to %c256 step %c16
// CHECK:             %[[SECOND:.+]] = arith.andi %[[STEP]], %c16
// CHECK:             %[[LINE:.+]] = arith.subi %[[STEP]], %[[SECOND]]
// CHECK:             %[[TURN:.+]] = arith.divui %[[SECOND]], %c16
// CHECK:             %[[DOWN:.+]] = arith.muli %[[TURN]], %c512
// CHECK:             arith.addi %[[LINE]], %[[DOWN]]
// CHECK-COUNT-2:     memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
// CHECK-NOT:         memref.prefetch
// NARROW-LABEL: func.func @one_row(
func.func @one_row(%x: memref<1x256xf32>, %w: memref<64x256xf32>, %z: memref<1x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<1x256xf32>, memref<64x256xf32>) outs(%z : memref<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// The first cache holds these.
// CHECK-LABEL: func.func @few_rows(
// CHECK-NOT:     memref.prefetch
func.func @few_rows(%w: memref<64x128xf32>, %x: memref<128x48xf32>, %z: memref<64x48xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x128xf32>, memref<128x48xf32>) outs(%z : memref<64x48xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Steps of narrow vectors have no room for that. Six strips of columns read the rows: each
// register tile fetches three lines of the six rows that take the place of its own.
// NARROW-LABEL: func.func @rows_of_strips(
// NARROW:         scf.for
// NARROW:           scf.for
// NARROW-COUNT-18:    memref.prefetch {{.+}} : memref<15360xf32
// NARROW-NOT:         memref.prefetch {{.+}} : memref<15360xf32
// NARROW:             scf.for
// NARROW-NOT:           memref.prefetch {{.+}} : memref<15360xf32
// NARROW:               scf.yield
// CHECK-LABEL: func.func @rows_of_strips(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               memref.prefetch {{.+}} : memref<15360xf32
func.func @rows_of_strips(%w: memref<128x240xf32>, %x: memref<240x96xf32>, %z: memref<64x96xf32>, %i: index) attributes {tile_graph.kernel} {
  %r = memref.subview %w[%i, 0] [64, 240] [1, 1] : memref<128x240xf32> to memref<64x240xf32, strided<[240, 1], offset: ?>>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r, %x : memref<64x240xf32, strided<[240, 1], offset: ?>>, memref<240x96xf32>) outs(%z : memref<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Three strips and a half are four.
// NARROW-LABEL: func.func @rows_of_half_a_strip(
// NARROW-NOT:     memref.prefetch {{.+}} : memref<15360xf32
// CHECK-LABEL: func.func @rows_of_half_a_strip(
// CHECK:         memref.prefetch {{.+}} : memref<15360xf32
func.func @rows_of_half_a_strip(%w: memref<64x240xf32>, %x: memref<240x56xf32>, %z: memref<64x56xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x240xf32>, memref<240x56xf32>) outs(%z : memref<64x56xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// All rows of an argument are in a cache when the next tile reads them.
// NARROW-LABEL: func.func @all_rows(
// NARROW-NOT:     memref.prefetch {{.+}} : memref<15360xf32
// CHECK-LABEL: func.func @all_rows(
func.func @all_rows(%w: memref<64x240xf32>, %x: memref<240x96xf32>, %z: memref<64x96xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x240xf32>, memref<240x96xf32>) outs(%z : memref<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows that are copied since they meet in one set: those of the next block of the reduction,
// or of the next rows behind the last block, are fetched while this one is multiplied, a
// line of each row of a register tile for each of its twelve strips of columns.
// CHECK-LABEL: func.func @copied_rows(
// NARROW-LABEL: func.func @copied_rows(
// NARROW-SAME:     %[[W:.+]]: memref<64x1024xf32>
// NARROW:        scf.for %{{.+}} = %c0 to %c1024 step %c128 {
// NARROW:          %[[FLAT:.+]] = memref.reinterpret_cast %{{.+}} to offset: [%[[START:.+]]], sizes: [64640], strides: [1]
// NARROW:          %[[BEGIN:.+]] = arith.remui %[[START]], %c1024
// NARROW:          %[[LAST:.+]] = arith.cmpi uge, %[[BEGIN]], %c896
// NARROW:          %[[ROWS:.+]] = arith.subi %c65536, %[[BEGIN]]
// NARROW:          %[[JUMP:.+]] = arith.select %[[LAST]], %[[ROWS]], %c128
// NARROW:          scf.for %[[COLUMN:.+]] = %c0 to %c192 step %c16 {
// NARROW:            scf.for %[[ROW:.+]] = %c0 to %c60 step %c6 {
// NARROW-DAG:          %[[DOWN:.+]] = arith.muli %[[ROW]], %c1024
// NARROW-DAG:          %[[FIRST:.+]] = arith.addi %[[DOWN]], %[[JUMP]]
// NARROW-DAG:          %[[STRIP:.+]] = arith.divui %[[COLUMN]], %c16
// NARROW-COUNT-6:      memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
// NARROW-NOT:          memref.prefetch %[[FLAT]]
// NARROW:              scf.for
// NARROW-NOT:            memref.prefetch %[[FLAT]]
// NARROW:                scf.yield
func.func @copied_rows(%w: memref<64x1024xf32>, %x: memref<1024x192xf32>, %z: memref<64x192xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  scf.for %k = %c0 to %c1024 step %c128 {
    %p = memref.subview %w[0, %k] [64, 128] [1, 1] : memref<64x1024xf32> to memref<64x128xf32, strided<[1024, 1], offset: ?>>
    %q = memref.subview %x[%k, 0] [128, 192] [1, 1] : memref<1024x192xf32> to memref<128x192xf32, strided<[192, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %q : memref<64x128xf32, strided<[1024, 1], offset: ?>>, memref<128x192xf32, strided<[192, 1], offset: ?>>) outs(%z : memref<64x192xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %0 = arith.mulf %l, %r : f32
      %1 = arith.addf %acc, %0 : f32
      linalg.yield %1 : f32
    }
  }
  return
}

// What is added behind the sums comes from far away: it is fetched before the products of
// the register tile, a line for each of its vectors, and only once. So are the lines that
// are written.
// CHECK-LABEL: func.func @residual(
// CHECK-SAME:      %{{.+}}: memref<48x64xf32>, %{{.+}}: memref<64x192xf32>, %[[R:.+]]: memref<48x192xf32>, %[[Z:.+]]: memref<48x192xf32>)
// CHECK:         %[[FLAT:.+]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [9216], strides: [1]
// CHECK:         %[[FLATZ:.+]] = memref.reinterpret_cast %[[Z]] to offset: [0], sizes: [9216], strides: [1]
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-COUNT-24:    memref.prefetch %[[FLAT]][%{{.+}}], read, locality<3>, data
// CHECK-COUNT-24:    memref.prefetch %[[FLATZ]][%{{.+}}], write, locality<3>, data
// CHECK:             scf.for
// CHECK-NOT:         locality<3>
// NARROW-LABEL: func.func @residual(
// NARROW-COUNT-12: memref.prefetch %{{.+}}, read, locality<3>, data
// NARROW-COUNT-12: memref.prefetch %{{.+}}, write, locality<3>, data
// NARROW-NOT:      locality<3>
func.func @residual(%x: memref<48x64xf32>, %w: memref<64x192xf32>, %r: memref<48x192xf32>, %z: memref<48x192xf32>) attributes {tile_graph.kernel} {
  %s = memref.alloc() : memref<48x192xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<48x64xf32>, memref<64x192xf32>) outs(%s : memref<48x192xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%s, %r : memref<48x192xf32>, memref<48x192xf32>) outs(%z : memref<48x192xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %s : memref<48x192xf32>
  return
}

// Eight steps are too few for that; the first cache holds 12 KiB.
// CHECK-LABEL: func.func @short_sums(
// CHECK-NOT:     locality<3>
// NARROW-LABEL: func.func @short_sums(
// NARROW-NOT:      locality<3>
func.func @short_sums(%x: memref<48x8xf32>, %w: memref<8x192xf32>, %r: memref<48x192xf32>, %z: memref<48x192xf32>) attributes {tile_graph.kernel} {
  %s = memref.alloc() : memref<48x192xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<48x8xf32>, memref<8x192xf32>) outs(%s : memref<48x192xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%s, %r : memref<48x192xf32>, memref<48x192xf32>) outs(%z : memref<48x192xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %s : memref<48x192xf32>
  return
}

// CHECK-LABEL: func.func @near_residual(
// CHECK-NOT:     locality<3>
// NARROW-LABEL: func.func @near_residual(
// NARROW-NOT:      locality<3>
func.func @near_residual(%x: memref<48x64xf32>, %w: memref<64x64xf32>, %r: memref<48x64xf32>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  %s = memref.alloc() : memref<48x64xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<48x64xf32>, memref<64x64xf32>) outs(%s : memref<48x64xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%s, %r : memref<48x64xf32>, memref<48x64xf32>) outs(%z : memref<48x64xf32>) attrs = {magweld.sweep = 0 : i64} {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %s : memref<48x64xf32>
  return
}

// The tile has made these: they are no argument.
// CHECK-LABEL: func.func @near_rows(
// CHECK-NOT:     memref.prefetch
func.func @near_rows(%x: memref<256x48xf32>, %z: memref<64x48xf32>) attributes {tile_graph.kernel} {
  %w = memref.alloc() : memref<64x256xf32>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : memref<64x256xf32>, memref<256x48xf32>) outs(%z : memref<64x48xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A block of 16 rows is turned by 64 shuffles and stored contiguously.
// CHECK-LABEL: func.func @transpose(
// CHECK-COUNT-16: vector.load
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
// CHECK-NOT:      memref.store
func.func @transpose(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// So is one of which every second element is read.
// CHECK-LABEL: func.func @transpose_of_even(
// CHECK-COUNT-16: vector.load
// CHECK-NOT:      memref.load
// CHECK-COUNT-16: vector.store
// CHECK-NOT:      memref.store
func.func @transpose_of_even(%x: memref<16x16xf32, strided<[64, 2]>>, %y: memref<16x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16x16xf32, strided<[64, 2]>>) outs(%y : memref<16x16xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// Column 48 is copied so that vectors run along the reduction, of its panel and of the
// rows; the sums over the lanes join what the result holds.
// CHECK-LABEL: func.func @one_column_more(
// CHECK-SAME:      %[[X:.+]]: memref<64x192xf32>, %[[Y:.+]]: memref<192x49xf32>, %[[Z:.+]]: memref<64x49xf32>)
// NARROW-LABEL: func.func @one_column_more(
// NARROW:        memref.alloc() {{.*}}: memref<3072xf32>
// NARROW:        vector.store
// NARROW:        %[[PANEL:.+]] = memref.alloc() {{.*}}: memref<192xf32>
// NARROW:        scf.for
// NARROW:          %[[DOTS:.+]]:11 = scf.for {{.+}} -> (vector<8xf32>
// NARROW:            %[[COLUMN:.+]] = vector.load %[[PANEL]]
// NARROW-COUNT-11:   arith.addf %{{.+}}, %{{.+}} : vector<8xf32>
// NARROW:            scf.yield
// NARROW:          vector.shuffle %[[DOTS]]#0, {{.+}} [4, 5, 6, 7]
func.func @one_column_more(%x: memref<64x192xf32>, %y: memref<192x49xf32>, %z: memref<64x49xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x192xf32>, memref<192x49xf32>) outs(%z : memref<64x49xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A boolean is a byte in memory: vectors of them are moved as bytes.
// CHECK-LABEL: func.func @booleans(
// CHECK:         llvm.load %{{.+}} : !llvm.ptr -> vector<16xi8>
// CHECK:         arith.trunci %{{.+}} : vector<16xi8> to vector<16xi1>
// CHECK:         arith.extui %{{.+}} : vector<16xi1> to vector<16xi8>
// CHECK:         llvm.store %{{.+}} : vector<16xi8>, !llvm.ptr
func.func @booleans(%x: memref<16xi1>, %y: memref<16xi1>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<16xi1>) outs(%y : memref<16xi1>) {
  ^bb0(%p: i1, %u: i1):
    %true = arith.constant true
    %0 = arith.xori %p, %true : i1
    linalg.yield %0 : i1
  }
  return
}

// Without a register tile an operation is left alone.
// CHECK-LABEL: func.func @dynamic(
// CHECK:         linalg.generic
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// A row that an index finds is read in vectors; the index is one scalar.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[I:.+]] = memref.load
// CHECK:         %[[ROW:.+]] = arith.index_cast %[[I]] : i64 to index
// CHECK:         vector.load %arg0[%[[ROW]], %{{.+}}] : memref<100x64xf32>, vector<16xf32>
func.func @rows(%table: memref<100x64xf32>, %i: memref<64xi64>, %y: memref<64x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%i : memref<64xi64>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = linalg.index 1 : index
    %2 = memref.load %table[%0, %1] : memref<100x64xf32>
    linalg.yield %2 : f32
  }
  return
}

// Two results whose elements lie in turns are stored as whole vectors.
// CHECK-LABEL: func.func @in_turns(
// CHECK:         %[[LOW:.+]] = vector.shuffle %[[A:.+]], %[[B:.+]] [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    vector.store %[[LOW]]
// CHECK-NEXT:    %[[HIGH:.+]] = vector.shuffle %[[A]], %[[B]] [2, 6, 3, 7] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    vector.store %[[HIGH]]
// CHECK-NOT:     memref.store
func.func @in_turns(%x: memref<4xf32>, %y: memref<8xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#id, affine_map<(d0) -> (d0 * 2)>, affine_map<(d0) -> (d0 * 2 + 1)>], iterator_types = ["parallel"], magweld.registers = {dims = [array<i64: 0>], lanes = 4 : i64, order = array<i64: 0>, packed_input = -1 : i64, unroll = array<i64: 1>, vector_dim = 0 : i64}} ins(%x : memref<4xf32>) outs(%y, %y : memref<8xf32>, memref<8xf32>) {
  ^bb0(%p: f32, %u: f32, %v: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %p, %0 : f32, f32
  }
  return
}

// Pairs of bf16 are one integer: rows of the panel are joined, those of the other operand
// are read as they are.
// CHECK-LABEL: func.func @pairs(
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<256xi32>
// CHECK:         %[[EVEN:.+]] = arith.extui %{{.+}} : vector<16xi16> to vector<16xi32>
// CHECK:         %[[ODD:.+]] = arith.extui %{{.+}} : vector<16xi16> to vector<16xi32>
// CHECK:         %[[HIGH:.+]] = arith.shli %[[ODD]], %{{.+}} : vector<16xi32>
// CHECK:         %[[PAIRS:.+]] = arith.ori %[[EVEN]], %[[HIGH]] : vector<16xi32>
// CHECK:         vector.store %[[PAIRS]]
// CHECK:         scf.for %[[K:.+]] = %c0 to %c16 step %c1
// CHECK:         %[[PAIR:.+]] = vector.load %{{.+}} : memref<256xbf16, strided<[1]>>, vector<2xbf16>
// CHECK:         vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK:         llvm.inline_asm "vdpbf16ps $3, $2, $0", "=v,0,v,v" %{{.+}}, %{{.+}}, %{{.+}} : (vector<16xf32>, vector<16xi32>, vector<16xi32>) -> vector<16xf32>
func.func @pairs(%x: memref<8x32xbf16>, %y: memref<32x16xbf16>, %z: memref<8x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = 1 : i64, pairs = 2 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x32xbf16>, memref<32x16xbf16>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// The last element of an odd sum is paired with zero, in the panel and in a copy of the
// other operand.
// CHECK-LABEL: func.func @odd_pairs(
// CHECK:         %[[ROWS:.+]] = memref.alloc() {alignment = 64 : i64} : memref<128xi32>
// CHECK:         vector.load %{{.+}} : memref<248xbf16, strided<[1]>>, vector<16xbf16>
// CHECK:         vector.store %{{.+}}, %[[ROWS]]{{.+}} : memref<128xi32>, vector<8xi32>
// CHECK:         arith.extui %{{.+}} : i16 to i32
// CHECK:         memref.store %{{.+}}, %[[ROWS]]
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<256xi32>
// CHECK:         arith.extui %{{.+}} : vector<16xi16> to vector<16xi32>
// CHECK:         scf.for %{{.+}} = %c0 to %c16 step %c1
// CHECK:         memref.load %[[ROWS]]
// CHECK:         llvm.inline_asm "vdpbf16ps
func.func @odd_pairs(%x: memref<8x31xbf16>, %y: memref<31x16xbf16>, %z: memref<8x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = 1 : i64, pairs = 2 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x31xbf16>, memref<31x16xbf16>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Single elements of f16 are widened once, in a copy; those of a panel when they are read.
// CHECK-LABEL: func.func @rows_of_f16(
// CHECK:         %[[ROWS:.+]] = memref.alloc() {alignment = 64 : i64} : memref<256xf32>
// CHECK:         %[[WIDE:.+]] = arith.extf %{{.+}} : vector<16xf16> to vector<16xf32>
// CHECK:         vector.store %[[WIDE]], %[[ROWS]]
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<512xf16>
// CHECK:         memref.load %[[ROWS]]
// CHECK:         arith.extf %{{.+}} : vector<16xf16> to vector<16xf32>
// CHECK-NOT:     arith.extf %{{.+}} : f16
// CHECK:         return
func.func @rows_of_f16(%x: memref<8x32xf16>, %y: memref<32x16xf16>, %z: memref<8x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = 1 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x32xf16>, memref<32x16xf16>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: f16, %q: f16, %acc: f32):
    %0 = arith.extf %p : f16 to f32
    %1 = arith.extf %q : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Those of bf16 as well, where no instruction takes pairs of them.
// CHECK-LABEL: func.func @rows_of_bf16(
// CHECK:         %[[ROWS:.+]] = memref.alloc() {alignment = 64 : i64} : memref<256xf32>
// CHECK:         %[[WIDE:.+]] = arith.extf %{{.+}} : vector<16xbf16> to vector<16xf32>
// CHECK:         vector.store %[[WIDE]], %[[ROWS]]
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<512xbf16>
// CHECK:         memref.load %[[ROWS]]
// CHECK:         arith.extf %{{.+}} : vector<16xbf16> to vector<16xf32>
// CHECK-NOT:     arith.extf %{{.+}} : bf16
// CHECK:         return
func.func @rows_of_bf16(%x: memref<8x32xbf16>, %y: memref<32x16xbf16>, %z: memref<8x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = 1 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x32xbf16>, memref<32x16xbf16>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// They are read again for each block of columns, also where the panel stays in its place.
// CHECK-LABEL: func.func @rows_beside_columns_in_place(
// CHECK:         %[[ROWS:.+]] = memref.alloc() {alignment = 64 : i64} : memref<256xf32>
// CHECK:         %[[WIDE:.+]] = arith.extf %{{.+}} : vector<16xbf16> to vector<16xf32>
// CHECK:         vector.store %[[WIDE]], %[[ROWS]]
// CHECK-NOT:     memref.alloc
// CHECK:         memref.load %[[ROWS]]
// CHECK:         arith.extf %{{.+}} : vector<16xbf16> to vector<16xf32>
// CHECK-NOT:     arith.extf %{{.+}} : bf16
// CHECK:         return
func.func @rows_beside_columns_in_place(%x: memref<8x32xbf16>, %y: memref<32x64xbf16>, %z: memref<8x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = -1 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x32xbf16>, memref<32x64xbf16>) outs(%z : memref<8x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// One block of columns in its place reads them once: they are widened then.
// CHECK-LABEL: func.func @rows_beside_one_block(
// CHECK-NOT:     memref.alloc
// CHECK:         arith.extf %{{.+}} : bf16 to f32
// CHECK:         return
func.func @rows_beside_one_block(%x: memref<8x32xbf16>, %y: memref<32x16xbf16>, %z: memref<8x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], magweld.registers = {dims = [array<i64: 0>, array<i64: 1>, array<i64: 2>], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = -1 : i64, unroll = array<i64: 4, 1, 1>, vector_dim = 1 : i64}} ins(%x, %y : memref<8x32xbf16>, memref<32x16xbf16>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// A loop of the body whose bounds are the same for all columns carries whole rows, as one
// vector of as many registers as there are columns for; those that are left follow.
// CHECK-LABEL: func.func @row_loop(
// CHECK:         scf.for
// CHECK:           scf.for {{.+}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<32xf32>)
// CHECK:             %[[ID:.+]] = memref.load %{{.+}} : memref<20xindex>
// CHECK:             vector.load %{{.+}}[%[[ID]], %{{.+}}] : memref<9x36xf32>, vector<32xf32>
// CHECK:           scf.for {{.+}} -> (vector<4xf32>)
// CHECK-NOT:     linalg
func.func @row_loop(%first: memref<4xindex>, %behind: memref<4xindex>, %ids: memref<20xindex>, %t: memref<9x36xf32>, %y: memref<4x36xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#per_row, #per_row, #row], iterator_types = ["parallel", "parallel"]} ins(%first, %behind : memref<4xindex>, memref<4xindex>) outs(%y : memref<4x36xf32>) {
  ^bb0(%f: index, %b: index, %u: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1 : index
    %d = linalg.index 1 : index
    %sum = scf.for %j = %f to %b step %one iter_args(%s = %zero) -> f32 {
      %id = memref.load %ids[%j] : memref<20xindex>
      %x = memref.load %t[%id, %d] : memref<9x36xf32>
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    linalg.yield %sum : f32
  }
  return
}

// Its bounds may not differ from column to column.
// CHECK-LABEL: func.func @ragged_columns(
// CHECK-NOT:     vector<
// CHECK:         return
func.func @ragged_columns(%behind: memref<36xindex>, %t: memref<9x36xf32>, %y: memref<4x36xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, #row], iterator_types = ["parallel", "parallel"]} ins(%behind : memref<36xindex>) outs(%y : memref<4x36xf32>) {
  ^bb0(%b: index, %u: f32):
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = linalg.index 1 : index
    %sum = scf.for %j = %none to %b step %one iter_args(%s = %zero) -> f32 {
      %x = memref.load %t[%j, %d] : memref<9x36xf32>
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    linalg.yield %sum : f32
  }
  return
}

// A window reads an image in its order in memory: two rows of results have the three
// vectors of a row of the image, before those of the next row are read.
// CHECK-LABEL: func.func @window(
// CHECK:         %[[IMAGE:.+]] = memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [72], strides: [1]
// CHECK:         vector.load %[[IMAGE]][%c19]
// CHECK-COUNT-2: arith.mulf
// CHECK:         vector.load %[[IMAGE]][%c20]
// CHECK-COUNT-2: arith.mulf
// CHECK:         vector.load %[[IMAGE]][%c36]
// CHECK-NOT:     vector.load %[[IMAGE]][%c18]
// CHECK:         return
func.func @window(%x: memref<4x18xf32>, %k: memref<3x3xf32>, %y: memref<2x16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(r, c, i, j) -> (r + i, c + j)>, affine_map<(r, c, i, j) -> (i, j)>, affine_map<(r, c, i, j) -> (r, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<4x18xf32>, memref<3x3xf32>) outs(%y : memref<2x16xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows are whole lines: where the result begins with one, its vectors go past the caches,
// and a fence behind all of them says when they are there.
// CHECK-LABEL: func.func @past_caches(
// CHECK-SAME:      %{{.+}}: memref<8x32xf32>, %[[Y:.+]]: memref<8x32xf32, strided<[64, 1]>>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C63:.+]] = arith.constant 63 : index
// CHECK:         %[[ADDRESS:.+]] = memref.extract_aligned_pointer_as_index
// CHECK:         %[[WITHIN:.+]] = arith.andi %{{.+}}, %[[C63]]
// CHECK:         %[[LINE:.+]] = arith.cmpi eq, %[[WITHIN]], %[[C0]]
// CHECK:         scf.if %[[LINE]] {
// CHECK:           scf.for
// CHECK-COUNT-2:     vector.store {{.+}}alignment = 64 : i64, nontemporal = true
// CHECK:         } else {
// CHECK-NOT:       nontemporal
// CHECK-COUNT-2:     vector.store
// CHECK:         llvm.fence seq_cst
// CHECK-NEXT:    return
// NARROW-LABEL: func.func @past_caches(
// NARROW-COUNT-4:  vector.store {{.+}}alignment = 32 : i64, nontemporal = true
func.func @past_caches(%x: memref<8x32xf32>, %y: memref<8x32xf32, strided<[64, 1]>>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x32xf32>) outs(%y : memref<8x32xf32, strided<[64, 1]>>) attrs = {tile_graph.nontemporal_stores = [0]} {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows of a line and a half, rows that are as far apart, and what is no vector.
// CHECK-LABEL: func.func @parts_of_lines(
// CHECK-NOT:     nontemporal
// CHECK-NOT:     llvm.fence
// CHECK-LABEL: func.func @far_rows(
// CHECK-NOT:     nontemporal
// CHECK-LABEL: func.func @turned_result(
// CHECK-NOT:     nontemporal = true
func.func @parts_of_lines(%x: memref<8x24xf32>, %y: memref<8x24xf32, strided<[64, 1]>>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x24xf32>) outs(%y : memref<8x24xf32, strided<[64, 1]>>) attrs = {tile_graph.nontemporal_stores = [0]} {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @far_rows(%x: memref<8x32xf32>, %y: memref<8x32xf32, strided<[72, 1]>>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x32xf32>) outs(%y : memref<8x32xf32, strided<[72, 1]>>) attrs = {tile_graph.nontemporal_stores = [0]} {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @turned_result(%x: memref<3x32xf32>, %y: memref<32x3xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #turned], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x32xf32>) outs(%y : memref<32x3xf32>) attrs = {tile_graph.nontemporal_stores = [0]} {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows of 14 elements of a window: one vector each, whose last two lanes are neither
// read nor written.
// CHECK-LABEL: func.func @short_rows(
// CHECK-SAME:      %[[X:.+]]: memref<16x16xf32>, %{{.+}}: memref<3x3xf32>, %[[Y:.+]]: memref<14x14xf32>)
// CHECK:         %[[MASK:.+]] = vector.constant_mask [14] : vector<16xi1>
// CHECK:         vector.maskedload %{{.+}}, %[[MASK]], %{{.+}} into vector<16xf32>
// CHECK-NOT:     vector<8xf32>
// CHECK-COUNT-14: vector.maskedstore %{{.+}}, %[[MASK]], %{{.+}} : {{.+}}, vector<16xi1>, vector<16xf32>
// CHECK-NOT:     linalg
// NARROW-LABEL: func.func @short_rows(
// NARROW-NOT:    vector.maskedload
#image = affine_map<(h, w, i, j) -> (h + i, w + j)>
#weight = affine_map<(h, w, i, j) -> (i, j)>
#result = affine_map<(h, w, i, j) -> (h, w)>
func.func @short_rows(%x: memref<16x16xf32>, %k: memref<3x3xf32>, %y: memref<14x14xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#image, #weight, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<16x16xf32>, memref<3x3xf32>) outs(%y : memref<14x14xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Every second element: the first vector has 15 of the elements that 14 lanes come
// from, the second, which begins one element early, those behind it.
// CHECK-LABEL: func.func @every_second(
// CHECK-DAG:     vector.constant_mask [12] : vector<16xi1>
// CHECK-DAG:     vector.constant_mask [14] : vector<16xi1>
// CHECK:         vector.load
// CHECK:         vector.maskedload
// CHECK:         vector.shuffle
// CHECK:         vector.maskedstore
#step = affine_map<(h, w, i, j) -> (h * 2 + i, w * 2 + j)>
func.func @every_second(%x: memref<29x29xf32>, %k: memref<3x3xf32>, %y: memref<14x14xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#step, #weight, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : memref<29x29xf32>, memref<3x3xf32>) outs(%y : memref<14x14xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows that are pages apart are copied as a whole before the first strip of columns,
// and the rows of the copy are thirteen lines apart.
// NARROW-LABEL: func.func @rows_pages_apart(
// NARROW:         %[[ROWS:.+]] = memref.alloc() {alignment = 64 : i64} : memref<13312xf32>
// NARROW:         vector.store {{.*}}, %[[ROWS]]
// NARROW:         memref.load %[[ROWS]]
// CHECK-LABEL:  func.func @rows_pages_apart(
// CHECK-NOT:      memref<13312xf32>
func.func @rows_pages_apart(%x: memref<64x192xf32, strided<[1024, 1], offset: ?>>, %w: memref<96x192xf32, strided<[1024, 1], offset: ?>>, %y: memref<64x96xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x192xf32, strided<[1024, 1], offset: ?>>, memref<96x192xf32, strided<[1024, 1], offset: ?>>) outs(%y : memref<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
