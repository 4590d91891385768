// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32 warpgroups=1},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers{warpgroups=1})" %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mma threads=128 subgroup=32},copy-by-vectors{threads=128 subgroup=32},map-tiles-to-threads{threads=128 subgroup=32},keep-tiles-in-registers{warpgroups=1})" %s | filecheck %s --check-prefix=MMA

!left = memref<64x64xf16, #gpu.address_space<workgroup>>
!right = memref<64x256xf16, #gpu.address_space<workgroup>>
!sum = memref<64x256xf32, #gpu.address_space<workgroup>>

// Each lane of a warpgroup has 128 sums: 32 results of eight columns, four sums of each.
// CHECK-LABEL: func.func @wide(
// CHECK:         memref.alloca() : memref<1x2x1x32x1x2xf32, #gpu.address_space<private>>
// CHECK-NOT:     memref<{{.*}}xf32, #gpu.address_space<workgroup>>
// CHECK:         #tile_graph.fragment<{{.+}}, [4, 1]>

// Where subgroups share columns as well, as many stay shared.
// MMA-LABEL:   func.func @wide(
// MMA:           memref.alloc() : memref<{{.*}}xf32, #gpu.address_space<workgroup>>
// MMA-NOT:       memref.alloca()
// MMA-NOT:       [4, 1]>
func.func @wide(%l: memref<64x256xf16>, %r: memref<256x256xf16>, %out: memref<64x256xf32>)
    attributes {tile_graph.kernel, tile_graph.copy_stages = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  scf.forall (%n) in (1) {
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    scf.for %k = %c0 to %c256 step %c64 {
      %ls = memref.alloc() : !left
      %lk = memref.subview %l[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      linalg.copy ins(%lk : memref<64x64xf16, strided<[256, 1], offset: ?>>) outs(%ls : !left)
      %rs = memref.alloc() : !right
      %rk = memref.subview %r[%k, 0] [64, 256] [1, 1] : memref<256x256xf16> to memref<64x256xf16, strided<[256, 1], offset: ?>>
      linalg.copy ins(%rk : memref<64x256xf16, strided<[256, 1], offset: ?>>) outs(%rs : !right)
      linalg.matmul ins(%ls, %rs : !left, !right) outs(%sum : !sum)
    }
    linalg.copy ins(%sum : !sum) outs(%out : memref<64x256xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
