// RUN: magweld-opt --split-input-file --cast-collapsed-rows %s | filecheck %s

// A slice of slices of an argument is a part of it from where the slices begin; a whole
// argument begins at its first element.
// CHECK: #[[BEGIN:.+]] = affine_map<(d0, d1) -> (d0 * 48 + d1 * 6 + 96)>
// CHECK-LABEL: func.func @slices(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<4x16x8x6xf16>, %[[Y:[a-z0-9]+]]: memref<16x8x6xf16>
// CHECK:         scf.forall (%[[I:.+]]) in (2)
// CHECK:           %[[Z:.+]] = memref.alloc
// CHECK:           scf.for %[[K:.+]] =
// CHECK-NOT:         memref.collapse_shape
// CHECK:             %[[O:.+]] = affine.apply #[[BEGIN]](%[[K]], %[[I]])
// CHECK:             memref.reinterpret_cast %[[X]] to offset: [%[[O]]], sizes: [1, 4, 24], strides: [768, 48, 1] : memref<4x16x8x6xf16> to memref<1x4x24xf16, strided<[768, 48, 1], offset: ?>>
// CHECK:           memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [16, 48], strides: [48, 1]
func.func @slices(%x: memref<4x16x8x6xf16>, %y: memref<16x8x6xf16>) attributes {tile_graph.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c14 = arith.constant 14 : index
  scf.forall (%i) in (2) {
    %z = memref.alloc() : memref<1x4x24xf16, #gpu.address_space<workgroup>>
    scf.for %k = %c0 to %c14 step %c4 {
      %t = memref.subview %x[0, %k, %i, 0] [1, 6, 4, 6] [1, 1, 1, 1] : memref<4x16x8x6xf16> to memref<1x6x4x6xf16, strided<[768, 48, 6, 1], offset: ?>>
      %s = memref.subview %t[0, 2, 0, 0] [1, 4, 4, 6] [1, 1, 1, 1] : memref<1x6x4x6xf16, strided<[768, 48, 6, 1], offset: ?>> to memref<1x4x4x6xf16, strided<[768, 48, 6, 1], offset: ?>>
      %r = memref.collapse_shape %s [[0], [1], [2, 3]] : memref<1x4x4x6xf16, strided<[768, 48, 6, 1], offset: ?>> into memref<1x4x24xf16, strided<[768, 48, 1], offset: ?>>
      linalg.copy ins(%r : memref<1x4x24xf16, strided<[768, 48, 1], offset: ?>>) outs(%z : memref<1x4x24xf16, #gpu.address_space<workgroup>>)
    }
    %w = memref.collapse_shape %y [[0], [1, 2]] : memref<16x8x6xf16> into memref<16x48xf16>
    %v = memref.alloc() : memref<16x48xf16, #gpu.address_space<workgroup>>
    linalg.copy ins(%w : memref<16x48xf16>) outs(%v : memref<16x48xf16, #gpu.address_space<workgroup>>)
  }
  return
}

// -----

// A tile of the block lies as its rows are read, and is seen in parts by who makes it.
// CHECK-LABEL: func.func @tile(
// CHECK:         %[[J:.+]] = memref.alloc() : memref<1x4x24xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[V:.+]] = memref.expand_shape %[[J]] {{\[}}[0], [1], [2, 3]] output_shape [1, 4, 4, 6]
// CHECK:         linalg.copy ins(%{{.+}}) outs(%[[V]] : memref<1x4x4x6xf16, #gpu.address_space<workgroup>>)
// CHECK-NOT:     memref.collapse_shape
// CHECK:         linalg.copy ins(%[[J]] :
func.func @tile(%x: memref<1x4x4x6xf16>, %y: memref<1x4x24xf16>) attributes {tile_graph.kernel} {
  scf.forall (%i) in (1) {
    %z = memref.alloc() : memref<1x4x4x6xf16, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<1x4x4x6xf16>) outs(%z : memref<1x4x4x6xf16, #gpu.address_space<workgroup>>)
    %r = memref.collapse_shape %z [[0], [1], [2, 3]] : memref<1x4x4x6xf16, #gpu.address_space<workgroup>> into memref<1x4x24xf16, #gpu.address_space<workgroup>>
    linalg.copy ins(%r : memref<1x4x24xf16, #gpu.address_space<workgroup>>) outs(%y : memref<1x4x24xf16>)
  }
  return
}

// -----

// Where a part of a tile begins is known to no cast.
// CHECK-LABEL: func.func @part_of_a_tile(
// CHECK:         memref.collapse_shape
func.func @part_of_a_tile(%x: memref<1x8x4x6xf16>, %y: memref<1x4x24xf16>) attributes {tile_graph.kernel} {
  scf.forall (%i) in (1) {
    %z = memref.alloc() : memref<1x8x4x6xf16, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<1x8x4x6xf16>) outs(%z : memref<1x8x4x6xf16, #gpu.address_space<workgroup>>)
    %s = memref.subview %z[0, 4, 0, 0] [1, 4, 4, 6] [1, 1, 1, 1] : memref<1x8x4x6xf16, #gpu.address_space<workgroup>> to memref<1x4x4x6xf16, strided<[192, 24, 6, 1], offset: 96>, #gpu.address_space<workgroup>>
    %r = memref.collapse_shape %s [[0], [1], [2, 3]] : memref<1x4x4x6xf16, strided<[192, 24, 6, 1], offset: 96>, #gpu.address_space<workgroup>> into memref<1x4x24xf16, strided<[192, 24, 1], offset: 96>, #gpu.address_space<workgroup>>
    linalg.copy ins(%r : memref<1x4x24xf16, strided<[192, 24, 1], offset: 96>, #gpu.address_space<workgroup>>) outs(%y : memref<1x4x24xf16>)
  }
  return
}
