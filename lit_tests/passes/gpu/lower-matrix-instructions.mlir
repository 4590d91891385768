// RUN: magweld-opt --pass-pipeline="builtin.module(map-to-matrix-instructions{family=mfma threads=64 subgroup=64},map-tiles-to-threads{threads=64 subgroup=64},keep-tiles-in-registers,place-shared-memory,insert-barriers,form-gpu-launch{threads=64 subgroup=64},lower-matrix-instructions)" %s | filecheck %s

!left = memref<16x32xbf16, #gpu.address_space<workgroup>>
!right = memref<32x16xbf16, #gpu.address_space<workgroup>>
!sum = memref<16x16xf32, #gpu.address_space<workgroup>>

// Rows of the left factor lie side by side along the reduction, those of the right one
// do not. The sums of a lane are in registers.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[SUM:.+]] = memref.alloca() : memref<1x1x4x1x1xf32, #gpu.address_space<private>>
// CHECK:         gpu.barrier
// CHECK-COUNT-4: memref.load %[[SUM]]
// CHECK:         %[[LEFT:.+]] = vector.load {{.+}} {alignment = 8 : i64} : memref<1x4x4x32xbf16, {{.+}}>, vector<4xbf16>
// CHECK-COUNT-4: memref.load %{{.+}} : memref<32x1x16xbf16
// CHECK:         %[[RIGHT:.+]] = vector.from_elements
// CHECK:         %[[A:.+]] = llvm.bitcast %[[LEFT]] : vector<4xbf16> to vector<4xi16>
// CHECK:         %[[B:.+]] = llvm.bitcast %[[RIGHT]] : vector<4xbf16> to vector<4xi16>
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"(%[[A]], %[[B]],
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"
// CHECK-COUNT-4: memref.store %{{.+}}, %[[SUM]]
// CHECK-NOT:     tile_graph.fragment
func.func @product(%x: memref<16x32xbf16>, %y: memref<32x16xbf16>, %out: memref<16x16xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%n) in (1) {
    %l = memref.alloc() : !left
    linalg.copy ins(%x : memref<16x32xbf16>) outs(%l : !left)
    %r = memref.alloc() : !right
    linalg.copy ins(%y : memref<32x16xbf16>) outs(%r : !right)
    %sum = memref.alloc() : !sum
    linalg.fill ins(%zero : f32) outs(%sum : !sum)
    linalg.matmul ins(%l, %r : !left, !right) outs(%sum : !sum)
    linalg.copy ins(%sum : !sum) outs(%out : memref<16x16xf32>)
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
