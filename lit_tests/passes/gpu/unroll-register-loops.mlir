// RUN: magweld-opt --unroll-register-loops="iterations=8" --canonicalize %s | filecheck %s

!registers = memref<2x2xf32, #gpu.address_space<private>>

// CHECK-LABEL: func.func @kernel(
func.func @kernel(%x: memref<64x2x2xf32>, %y: memref<64xf32>, %z: memref<8xf32>) attributes {tile_graph.kernel} {
  %r = memref.alloca() : !registers
  // The loops over the register tile are unrolled, the long one around them stays.
  // CHECK:         %[[R:.+]] = memref.alloca()
  // CHECK:         affine.for %[[K:.+]] = 0 to 64 {
  // CHECK-NOT:       affine.for
  // CHECK-DAG:       affine.store %{{.+}}, %[[R]][0, 0]
  // CHECK-DAG:       affine.store %{{.+}}, %[[R]][0, 1]
  // CHECK-DAG:       affine.store %{{.+}}, %[[R]][1, 0]
  // CHECK-DAG:       affine.store %{{.+}}, %[[R]][1, 1]
  // CHECK:         }
  affine.for %k = 0 to 64 {
    affine.for %i = 0 to 2 {
      affine.for %j = 0 to 2 {
        %v = affine.load %x[%k, %i, %j] : memref<64x2x2xf32>
        affine.store %v, %r[%i, %j] : !registers
      }
    }
  }
  // Of a long loop without registers four iterations become one, along the rows of f32.
  // CHECK-NEXT:    affine.for %[[I:.+]] = 0 to 64 step 4 {
  // CHECK-NEXT:      affine.load %{{.+}}[%[[I]]]
  // CHECK:           affine.load %{{.+}}[%[[I]] + 3]
  // CHECK-NOT:       affine.load
  // CHECK:         }
  affine.for %k = 0 to 64 {
    %v = affine.load %y[%k] : memref<64xf32>
    affine.store %v, %y[%k] : memref<64xf32>
  }
  // Down a column it stays.
  // CHECK:         affine.for %{{.+}} = 0 to 64 {
  affine.for %k = 0 to 64 {
    %v = affine.load %x[%k, 0, 0] : memref<64x2x2xf32>
    affine.store %v, %x[%k, 0, 1] : memref<64x2x2xf32>
  }
  // A short one is unrolled.
  // CHECK-COUNT-8: affine.store %{{.+}}, %{{.+}}[{{[0-7]}}]
  // CHECK-NOT:     magweld.unroll
  affine.for %k = 0 to 8 {
    %v = affine.load %y[%k] : memref<64xf32>
    affine.store %v, %z[%k] : memref<8xf32>
  }
  return
}
