// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(copy-by-vectors{threads=64 subgroup=32})" %s | filecheck %s

!left = memref<8x32xf32, strided<[64, 1], offset: ?>>
!right = memref<32x16xf32, strided<[18, 1], offset: ?>>
!a = memref<8x32xf32, #gpu.address_space<workgroup>>
!b = memref<32x16xf32, #gpu.address_space<workgroup>>
!c = memref<8x16xf32, #gpu.address_space<workgroup>>

// Rows that begin at multiples of 16 bytes move in pieces of four, those of 72 bytes in
// pieces of two. The product reads the tiles as they were.
// CHECK-LABEL: func.func @product(
func.func @product(%x: memref<64x64xf32>, %y: memref<64x18xf32>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.forall (%n) in (8) {
    %c = memref.alloc() : !c
    scf.for %k = %c0 to %c64 step %c32 {
      %i = affine.apply affine_map<(d0) -> (d0 * 8)>(%n)
      %l = memref.subview %x[%i, %k] [8, 32] [1, 1] : memref<64x64xf32> to !left
      %r = memref.subview %y[%k, 0] [32, 16] [1, 1] : memref<64x18xf32> to !right
      // CHECK:       %[[A:.+]] = memref.alloc() : memref<8x32xf32, #gpu.address_space<workgroup>>
      %a = memref.alloc() : !a
      // CHECK:       %[[B:.+]] = memref.alloc() : memref<32x16xf32, #gpu.address_space<workgroup>>
      %b = memref.alloc() : !b
      // CHECK:       %[[L:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [8, 8, 4] : memref<8x32xf32, strided<[64, 1], offset: ?>>
      // CHECK:       %[[P:.+]] = memref.expand_shape %[[A]] {{\[}}[0], [1, 2]] output_shape [8, 8, 4]
      // CHECK:       linalg.generic
      // CHECK-SAME:    ins(%[[L]]
      // CHECK-SAME:    outs(%[[P]]
      // CHECK-SAME:    magweld.vector_loop = 2 : i64
      linalg.copy ins(%l : !left) outs(%a : !a)
      // CHECK:       %[[R:.+]] = memref.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [32, 8, 2] : memref<32x16xf32, strided<[18, 1], offset: ?>>
      // CHECK:       linalg.generic
      // CHECK-SAME:    ins(%[[R]]
      // CHECK-SAME:    magweld.vector_loop = 2 : i64
      linalg.copy ins(%r : !right) outs(%b : !b)
      // CHECK:       linalg.matmul ins(%[[A]], %[[B]]
      linalg.matmul ins(%a, %b : !a, !b) outs(%c : !c)
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!h = memref<4x32xf16, #gpu.address_space<workgroup>>
!o = memref<4x33xf16, #gpu.address_space<workgroup>>
!c = memref<4x4xf32, #gpu.address_space<workgroup>>

// Halves have pieces of eight; odd rows, rows that start at odd numbers and columns
// move by elements.
// CHECK-LABEL: func.func @widths(
func.func @widths(%x: memref<4x32xf16>, %y: memref<4x33xf16>, %z: memref<4x40xf16>, %w: memref<4x32x2xf16>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %c = memref.alloc() : !c
    %a = memref.alloc() : !h
    // CHECK:       output_shape [4, 4, 8] : memref<4x32xf16>
    linalg.copy ins(%x : memref<4x32xf16>) outs(%a : !h)
    // CHECK:       outs(%{{.+}} : memref<4x4x8xf16, #gpu.address_space<workgroup>>) attrs = {magweld.vector_loop = 2 : i64}
    // CHECK-NOT:   expand_shape
    %b = memref.alloc() : !o
    linalg.copy ins(%y : memref<4x33xf16>) outs(%b : !o)
    %s = memref.subview %z[0, 1] [4, 32] [1, 1] : memref<4x40xf16> to memref<4x32xf16, strided<[40, 1], offset: 1>>
    %d = memref.alloc() : !h
    linalg.copy ins(%s : memref<4x32xf16, strided<[40, 1], offset: 1>>) outs(%d : !h)
    %t = memref.subview %w[0, 0, 0] [4, 32, 1] [1, 1, 1] : memref<4x32x2xf16> to memref<4x32xf16, strided<[64, 2]>>
    %e = memref.alloc() : !h
    linalg.copy ins(%t : memref<4x32xf16, strided<[64, 2]>>) outs(%e : !h)
    linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %d : !h, !h) outs(%c : !c)
    linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%b, %b : !o, !o) outs(%c : !c)
    linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%e, %e : !h, !h) outs(%c : !c)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

!t = memref<4x32xf32, #gpu.address_space<workgroup>>

// A tile that no product reads may stay in registers: split-rows decides.
// CHECK-LABEL: func.func @elementwise(
// CHECK:         linalg.copy
// CHECK-NOT:     magweld.vector_loop
func.func @elementwise(%x: memref<4x32xf32>, %y: memref<4x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (1) {
    %t = memref.alloc() : !t
    linalg.copy ins(%x : memref<4x32xf32>) outs(%t : !t)
    linalg.exp ins(%t : !t) outs(%y : memref<4x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// -----

// So does a tile that is read across its rows; one that is read along them may stay in
// registers.
// CHECK-LABEL: func.func @transposed(
func.func @transposed(%x: memref<16x32xf32>, %y: memref<32x16xf32>, %z: memref<16x32xf32>) attributes {tile_graph.kernel} {
  scf.forall (%n) in (8) {
    // CHECK:       %[[A:.+]] = memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
    %a = memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
    // CHECK:       %[[P:.+]] = memref.expand_shape %[[A]] {{\[}}[0], [1, 2]] output_shape [16, {{[0-9]+}}, {{[0-9]+}}]
    // CHECK:       linalg.generic
    // CHECK-SAME:    outs(%[[P]]
    // CHECK-SAME:    magweld.vector_loop = 2 : i64
    linalg.copy ins(%x : memref<16x32xf32>) outs(%a : memref<16x32xf32, #gpu.address_space<workgroup>>)
    // CHECK:       linalg.copy
    linalg.copy ins(%x : memref<16x32xf32>) outs(%b : memref<16x32xf32, #gpu.address_space<workgroup>>)
    // CHECK:       linalg.transpose ins(%[[A]]
    linalg.transpose ins(%a : memref<16x32xf32, #gpu.address_space<workgroup>>) outs(%y : memref<32x16xf32>) permutation = [1, 0]
    linalg.exp ins(%b : memref<16x32xf32, #gpu.address_space<workgroup>>) outs(%z : memref<16x32xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
