// RUN: magweld-opt --tile-for-registers %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="tile-for-registers{vector-bits=256 vector-registers=16}" %s | filecheck %s --check-prefix=AVX2
// RUN: magweld-opt --pass-pipeline="tile-for-registers{bf16-pairs=true}" %s | filecheck %s --check-prefix=PAIRS

#row = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#per_row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Contiguous loops become one.
// CHECK-LABEL: func.func @pointwise(
// CHECK:         magweld.registers = {dims = [array<i64: 0, 1>], lanes = 16 : i64, order = array<i64: 0>, packed_input = -1 : i64, unroll = array<i64: 4>, vector_dim = 0 : i64}
// AVX2-LABEL:  func.func @pointwise(
// AVX2:          lanes = 8 : i64
func.func @pointwise(%x: memref<16x384xf32>, %y: memref<16x384xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16x384xf32>) outs(%y : memref<16x384xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  }
  return
}

// A contiguous reduction keeps a partial result in each lane of four vectors.
// CHECK-LABEL: func.func @row_sum(
// CHECK:         dims = [array<i64: 0>, array<i64: 1>], lanes = 16 : i64, order = array<i64: 0, 1>, {{.*}}unroll = array<i64: 1, 4>, vector_dim = 1 : i64
func.func @row_sum(%x: memref<16x384xf32>, %y: memref<16xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #per_row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<16x384xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %p, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// Any other reduction vectorises what is contiguous in the result.
// CHECK-LABEL: func.func @column_sum(
// CHECK:         order = array<i64: 1, 0>, {{.*}}unroll = array<i64: 1, 4>, vector_dim = 1 : i64
func.func @column_sum(%x: memref<16x384xf32>, %y: memref<384xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<16x384xf32>) outs(%y : memref<384xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %p, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// A turned input is read in square blocks.
// CHECK-LABEL: func.func @transpose(
// CHECK:         lanes = 16 : i64, {{.*}}unroll = array<i64: 16, 1>, vector_dim = 1 : i64
func.func @transpose(%x: memref<64x32xf32>, %y: memref<32x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x32xf32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// A matrix product fills the registers with accumulators.
// CHECK-LABEL: func.func @matmul(
// CHECK:         order = array<i64: 1, 0, 2>, packed_input = -1 : i64, unroll = array<i64: 6, 4, 1>, vector_dim = 1 : i64
// AVX2-LABEL:  func.func @matmul(
// AVX2:          lanes = 8 : i64
func.func @matmul(%x: memref<48x64xf32>, %y: memref<64x64xf32>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<48x64xf32>, memref<64x64xf32>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Its operand is packed where it is not contiguous along the columns.
// CHECK-LABEL: func.func @matmul_transposed(
// CHECK:         packed_input = 1 : i64
func.func @matmul_transposed(%x: memref<48x64xf32>, %y: memref<64x64xf32>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<48x64xf32>, memref<64x64xf32>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// 49 columns are three or six vectors and one column: that is made of dot products.
// CHECK-LABEL: func.func @one_column_more(
// CHECK:         packed_input = 1 : i64, rest = {dims = [], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = -1 : i64, unroll = array<i64: {{[0-9]+}}, 1, 1>, vector_dim = 2 : i64}, {{.*}}vector_dim = 1 : i64
// AVX2-LABEL:  func.func @one_column_more(
// AVX2:          rest = {dims = [], lanes = 8 : i64
func.func @one_column_more(%x: memref<64x192xf32>, %y: memref<192x49xf32>, %z: memref<64x49xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x192xf32>, memref<192x49xf32>) outs(%z : memref<64x49xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Where rows are neighbours, that column is a vector of them.
// CHECK-LABEL: func.func @one_column_of_neighbours(
// CHECK:         packed_input = -1 : i64, rest = {dims = [], lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = -1 : i64, unroll = array<i64: 1, 1, 1>, vector_dim = 0 : i64}, {{.*}}vector_dim = 1 : i64
// AVX2-LABEL:  func.func @one_column_of_neighbours(
// AVX2:          rest = {dims = [], lanes = 8 : i64, {{.*}}unroll = array<i64: 2, 1, 1>, vector_dim = 0 : i64}
func.func @one_column_of_neighbours(%x: memref<64x16xf32>, %y: memref<64x49xf32>, %z: memref<16x49xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x16xf32>, memref<64x49xf32>) outs(%z : memref<16x49xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// The panel of 196 is no copy for the sake of four columns: its rows begin anywhere.
// CHECK-LABEL: func.func @four_columns_more(
// CHECK:         packed_input = -1 : i64, unroll = array<i64: 6, 4, 1>, vector_dim = 1 : i64
// AVX2-LABEL:  func.func @four_columns_more(
// AVX2:          packed_input = -1 : i64, unroll = array<i64: 6, 2, 1>, vector_dim = 1 : i64
func.func @four_columns_more(%x: memref<64x192xf32>, %y: memref<192x196xf32>, %z: memref<64x196xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x192xf32>, memref<192x196xf32>) outs(%z : memref<64x196xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// 64 rows that are pages apart are read where they are, 256 are packed.
// CHECK-LABEL: func.func @few_rows_apart(
// CHECK:         packed_input = -1 : i64
// CHECK-LABEL: func.func @many_rows_apart(
// CHECK:         packed_input = 1 : i64
func.func @few_rows_apart(%x: memref<64x64xf32>, %y: memref<64x448xf32, strided<[3136, 1]>>, %z: memref<64x448xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x64xf32>, memref<64x448xf32, strided<[3136, 1]>>) outs(%z : memref<64x448xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

func.func @many_rows_apart(%x: memref<64x256xf32>, %y: memref<256x448xf32, strided<[3136, 1]>>, %z: memref<64x448xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x256xf32>, memref<256x448xf32, strided<[3136, 1]>>) outs(%z : memref<64x448xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows that values tell are vectors along the row, whatever else walks contiguously.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     magweld.remarks
// CHECK:         unroll = array<i64: 1, 4>, vector_dim = 1 : i64
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

// The index of the row changes along the row: one element at a time.
// CHECK-LABEL: func.func @diagonal(
// CHECK-SAME:      magweld.remarks = ["scalar code for 'linalg.generic': 'memref.load' in the body has no form on vectors"]
// CHECK:         lanes = 1 : i64
func.func @diagonal(%table: memref<64x64xf32>, %i: memref<64xi64>, %y: memref<64x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%i : memref<64xi64>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = linalg.index 1 : index
    %2 = memref.load %table[%0, %1] : memref<64x64xf32>
    linalg.yield %2 : f32
  }
  return
}

// A gather of single elements has no form on vectors; the kernel says so.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME:      magweld.remarks = ["scalar code for 'linalg.generic': 'memref.load' in the body has no form on vectors"]
// CHECK:         lanes = 1 : i64, {{.*}}vector_dim = -1 : i64
func.func @gather(%table: memref<100xf32>, %i: memref<64xi64>, %y: memref<64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : memref<64xi64>) outs(%y : memref<64xf32>) {
  ^bb0(%p: i64, %u: f32):
    %0 = arith.index_cast %p : i64 to index
    %1 = memref.load %table[%0] : memref<100xf32>
    linalg.yield %1 : f32
  }
  return
}

// What is no static loop nest is left to plain loops.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:      magweld.remarks = ["plain loops for 'linalg.generic': a loop has no static extent"]
// CHECK-NOT:     magweld.registers
// CHECK:         return
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// Products of bf16 are multiplied in pairs where the CPU can: the panel has them together.
// CHECK-LABEL: func.func @pairs(
// CHECK-NOT:     pairs =
// PAIRS-LABEL: func.func @pairs(
// PAIRS:         lanes = 16 : i64, order = array<i64: 1, 0, 2>, packed_input = 1 : i64, pairs = 2 : i64, unroll = array<i64: 6, 4, 1>
func.func @pairs(%x: memref<48x64xbf16>, %y: memref<64x64xbf16>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<48x64xbf16>, memref<64x64xbf16>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// There is no such instruction for f16.
// CHECK-LABEL: func.func @no_pairs_of_f16(
// CHECK-NOT:     pairs =
// PAIRS-LABEL: func.func @no_pairs_of_f16(
// PAIRS-NOT:     pairs =
func.func @no_pairs_of_f16(%x: memref<48x64xf16>, %y: memref<64x64xf16>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<48x64xf16>, memref<64x64xf16>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: f16, %q: f16, %acc: f32):
    %0 = arith.extf %p : f16 to f32
    %1 = arith.extf %q : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// The last element of an odd sum is paired with zero.
// CHECK-LABEL: func.func @odd_pairs(
// CHECK-NOT:     pairs =
// PAIRS-LABEL: func.func @odd_pairs(
// PAIRS:         packed_input = 1 : i64, pairs = 2 : i64
func.func @odd_pairs(%x: memref<48x63xbf16>, %y: memref<63x64xbf16>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<48x63xbf16>, memref<63x64xbf16>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// What is not packed is copied where the elements of its pairs are no neighbours.
// CHECK-LABEL: func.func @no_neighbours(
// CHECK-NOT:     pairs =
// PAIRS-LABEL: func.func @no_neighbours(
// PAIRS:         packed_input = 1 : i64, pairs = 2 : i64
func.func @no_neighbours(%x: memref<64x48xbf16>, %y: memref<64x64xbf16>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<64x48xbf16>, memref<64x64xbf16>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// A copy of more than the second cache holds would be read from farther away.
// PAIRS-LABEL: func.func @too_many_to_copy(
// PAIRS-NOT:     pairs =
func.func @too_many_to_copy(%x: memref<4096x48xbf16>, %y: memref<4096x64xbf16>, %z: memref<48x64xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<4096x48xbf16>, memref<4096x64xbf16>) outs(%z : memref<48x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %acc: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Rows of 14 elements with gaps are one vector that is not full where there are masks.
// CHECK-LABEL: func.func @short_rows(
// CHECK:         lanes = 16 : i64, masked, order
// AVX2-LABEL:  func.func @short_rows(
// AVX2-NOT:      masked
// AVX2:          lanes = 8 : i64
func.func @short_rows(%x: memref<8x14xf32>, %y: memref<8x14xf32, strided<[16, 1], offset: 17>>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x14xf32>) outs(%y : memref<8x14xf32, strided<[16, 1], offset: 17>>) {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
  }
  return
}

// Lanes without an element are zeros: nothing may be divided by them but floats.
// CHECK-LABEL: func.func @short_rows_of_integers(
// CHECK-NOT:     masked
// CHECK:         lanes = 8 : i64
func.func @short_rows_of_integers(%x: memref<8x14xi32>, %y: memref<8x14xi32, strided<[16, 1], offset: 17>>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x14xi32>) outs(%y : memref<8x14xi32, strided<[16, 1], offset: 17>>) {
  ^bb0(%p: i32, %u: i32):
    %0 = arith.divsi %p, %p : i32
    linalg.yield %0 : i32
  }
  return
}

// Rows that are pages apart meet in a few sets of the first cache: they are copied, where
// that was measured, and where they are read often enough.
// CHECK-LABEL: func.func @rows_pages_apart(
// CHECK-NOT:     copied_input
// AVX2-LABEL:  func.func @rows_pages_apart(
// AVX2:          magweld.registers = {copied_input = 0 : i64, {{.*}}packed_input = 1 : i64
func.func @rows_pages_apart(%x: memref<64x192xf32, strided<[1024, 1], offset: ?>>, %w: memref<96x192xf32, strided<[1024, 1], offset: ?>>, %y: memref<64x96xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x192xf32, strided<[1024, 1], offset: ?>>, memref<96x192xf32, strided<[1024, 1], offset: ?>>) outs(%y : memref<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows an odd number of lines apart are in sets of their own.
// AVX2-LABEL:  func.func @rows_in_sets_of_their_own(
// AVX2-NOT:      copied_input
func.func @rows_in_sets_of_their_own(%x: memref<64x192xf32, strided<[1040, 1], offset: ?>>, %w: memref<96x192xf32, strided<[1024, 1], offset: ?>>, %y: memref<64x96xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x192xf32, strided<[1040, 1], offset: ?>>, memref<96x192xf32, strided<[1024, 1], offset: ?>>) outs(%y : memref<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Two strips of columns read them too seldom.
// AVX2-LABEL:  func.func @rows_of_few_columns(
// AVX2-NOT:      copied_input
func.func @rows_of_few_columns(%x: memref<64x192xf32, strided<[1024, 1], offset: ?>>, %w: memref<32x192xf32, strided<[1024, 1], offset: ?>>, %y: memref<64x32xf32>) attributes {tile_graph.kernel} {
  linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x192xf32, strided<[1024, 1], offset: ?>>, memref<32x192xf32, strided<[1024, 1], offset: ?>>) outs(%y : memref<64x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
