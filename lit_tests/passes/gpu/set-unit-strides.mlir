// RUN: magweld-opt --set-unit-strides %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(set-unit-strides,gpu.module(fold-memref-alias-ops,expand-strided-metadata))" %s | filecheck %s --check-prefix=FOLDED

// One of the queries of four windows: what is around it drops the third dimension, which
// is as far apart as every other head is.
//
// CHECK-LABEL: gpu.func @window(
// CHECK:         memref.subview %{{.+}}[%{{.+}}, 0, %{{.+}}, %{{.+}}] [1, 7, 1, 1] [1, 1, 1, 1] : memref<4x7x2x16xf32, {{.+}}> to memref<1x7x1x1xf32, strided<[4704, 96, 16, 1], offset: ?>>
// FOLDED-LABEL: gpu.func @window(
// FOLDED:         memref.reinterpret_cast {{.+}} sizes: [1, 7, 1, 1], strides: [4704, 96, 16, 1]
gpu.module @device {
  gpu.func @window(%arg0: memref<4x49x3x2x16xf32>, %w: index, %h: index, %c: index, %o: memref<f32>) kernel {
    %head = memref.subview %arg0[0, %w, 0, 0, 0] [4, 7, 1, 2, 16] [1, 1, 1, 1, 1]
        : memref<4x49x3x2x16xf32> to memref<4x7x2x16xf32, strided<[4704, 96, 16, 1], offset: ?>>
    %own = memref.subview %head[%w, 0, %h, %c] [1, 7, 1, 1] [4, 1, 2, 16]
        : memref<4x7x2x16xf32, strided<[4704, 96, 16, 1], offset: ?>>
        to memref<1x7x1x1xf32, strided<[18816, 96, 32, 16], offset: ?>>
    %x = affine.load %own[0, 1, 0, 0] : memref<1x7x1x1xf32, strided<[18816, 96, 32, 16], offset: ?>>
    affine.store %x, %o[] : memref<f32>
    gpu.return
  }

// A slice of a slice is built again with it; one that drops a dimension is left alone.
//
// CHECK-LABEL: gpu.func @nested(
// CHECK:         %[[OUTER:.+]] = memref.subview %{{.+}}[%{{.+}}, 0] [1, 8] [1, 2] : memref<8x16xf32> to memref<1x8xf32, strided<[16, 2], offset: ?>>
// CHECK:         memref.subview %[[OUTER]][0, %{{.+}}] [1, 1] [1, 1] : {{.+}} to memref<1x1xf32, strided<[16, 2], offset: ?>>
// CHECK:         memref.subview %{{.+}}[%{{.+}}, 0] [1, 8] [4, 2] : memref<8x16xf32> to memref<8xf32, strided<[2], offset: ?>>
  gpu.func @nested(%arg0: memref<8x16xf32>, %i: index, %o: memref<f32>) kernel {
    %outer = memref.subview %arg0[%i, 0] [1, 8] [4, 2]
        : memref<8x16xf32> to memref<1x8xf32, strided<[64, 2], offset: ?>>
    %inner = memref.subview %outer[0, %i] [1, 1] [1, 4]
        : memref<1x8xf32, strided<[64, 2], offset: ?>> to memref<1x1xf32, strided<[64, 8], offset: ?>>
    %x = affine.load %inner[0, 0] : memref<1x1xf32, strided<[64, 8], offset: ?>>
    affine.store %x, %o[] : memref<f32>
    %row = memref.subview %arg0[%i, 0] [1, 8] [4, 2]
        : memref<8x16xf32> to memref<8xf32, strided<[2], offset: ?>>
    %y = affine.load %row[0] : memref<8xf32, strided<[2], offset: ?>>
    affine.store %y, %o[] : memref<f32>
    gpu.return
  }
}
