// RUN: magweld-opt --split-input-file --vectorize-accesses --cse --vectorize-accesses --canonicalize --cse %s | filecheck %s

gpu.module @module {
  // CHECK-LABEL: gpu.func @copy(
  // CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<8x64xf32>, %[[Y:[a-z0-9]+]]: memref<8x64xf32>)
  gpu.func @copy(%x: memref<8x64xf32>, %y: memref<8x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %t = gpu.thread_id x
    %s = arith.muli %t, %c4 : index
    // Six elements behind multiples of four: four at once, then two. Element 1 is
    // loaded twice.
    // CHECK-NOT:     memref.load
    // CHECK:         vector.load %{{.+}}[%c0] {alignment = 16 : i64} : {{.+}}, vector<4xf32>
    %a = memref.reinterpret_cast %x to offset: [%s], sizes: [6], strides: [1] : memref<8x64xf32> to memref<6xf32, strided<[1], offset: ?>>
    %b = memref.reinterpret_cast %y to offset: [%s], sizes: [6], strides: [1] : memref<8x64xf32> to memref<6xf32, strided<[1], offset: ?>>
    %0 = memref.load %a[%c0] : memref<6xf32, strided<[1], offset: ?>>
    // CHECK:         vector.store %{{.+}}, %{{.+}}[%c0] {alignment = 16 : i64} : {{.+}}, vector<4xf32>
    memref.store %0, %b[%c0] : memref<6xf32, strided<[1], offset: ?>>
    %1 = memref.load %a[%c1] : memref<6xf32, strided<[1], offset: ?>>
    memref.store %1, %b[%c1] : memref<6xf32, strided<[1], offset: ?>>
    %2 = memref.load %a[%c2] : memref<6xf32, strided<[1], offset: ?>>
    %again = memref.load %a[%c1] : memref<6xf32, strided<[1], offset: ?>>
    %sum = arith.addf %2, %again : f32
    memref.store %sum, %b[%c2] : memref<6xf32, strided<[1], offset: ?>>
    %3 = memref.load %a[%c3] : memref<6xf32, strided<[1], offset: ?>>
    memref.store %3, %b[%c3] : memref<6xf32, strided<[1], offset: ?>>
    %4 = memref.load %a[%c4] : memref<6xf32, strided<[1], offset: ?>>
    %5 = memref.load %a[%c5] : memref<6xf32, strided<[1], offset: ?>>
    // CHECK-NOT:     memref.load
    // CHECK:         vector.load %{{.+}}[%c4] {alignment = 8 : i64} : {{.+}}, vector<2xf32>
    // One element alone stays a scalar.
    // CHECK:         memref.store %{{.+}}, %{{.+}}[%c4]
    %6 = arith.addf %4, %5 : f32
    memref.store %6, %b[%c4] : memref<6xf32, strided<[1], offset: ?>>
    gpu.return
  }

  // Threads begin anywhere: nothing is known of the alignment.
  // CHECK-LABEL: gpu.func @unaligned(
  // CHECK-NOT:     vector.load
  // CHECK-COUNT-4: memref.load
  gpu.func @unaligned(%x: memref<64xf32>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %t = gpu.thread_id x
    %a = memref.reinterpret_cast %x to offset: [%t], sizes: [4], strides: [1] : memref<64xf32> to memref<4xf32, strided<[1], offset: ?>>
    %0 = memref.load %a[%c0] : memref<4xf32, strided<[1], offset: ?>>
    %1 = memref.load %a[%c1] : memref<4xf32, strided<[1], offset: ?>>
    %2 = memref.load %a[%c2] : memref<4xf32, strided<[1], offset: ?>>
    %3 = memref.load %a[%c3] : memref<4xf32, strided<[1], offset: ?>>
    memref.store %0, %y[%c3] : memref<4xf32>
    memref.store %1, %y[%c2] : memref<4xf32>
    // CHECK:         vector.store %{{.+}}, %{{.+}}[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    memref.store %2, %y[%c1] : memref<4xf32>
    memref.store %3, %y[%c0] : memref<4xf32>
    gpu.return
  }

  // What another access to the same memory or a barrier lies between is not joined.
  // CHECK-LABEL: gpu.func @between(
  // CHECK-NOT:     vector.
  // CHECK:         gpu.return
  gpu.func @between(%x: memref<4xf16>, %y: memref<4xf16>, %z: memref<4xf16>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = memref.load %x[%c0] : memref<4xf16>
    memref.store %0, %x[%i] : memref<4xf16>
    %1 = memref.load %x[%c1] : memref<4xf16>
    memref.store %0, %y[%c0] : memref<4xf16>
    %2 = memref.load %y[%i] : memref<4xf16>
    memref.store %1, %y[%c1] : memref<4xf16>
    %3 = memref.load %z[%c0] : memref<4xf16>
    gpu.barrier
    %4 = memref.load %z[%c1] : memref<4xf16>
    memref.store %2, %z[%c0] : memref<4xf16>
    memref.store %3, %z[%i] : memref<4xf16>
    memref.store %4, %z[%c1] : memref<4xf16>
    gpu.return
  }
}

// -----

gpu.module @rows {
  // A number that is loaded again tells the same row: the row is loaded at once. Its
  // neighbours in a column are not side by side.
  // CHECK-LABEL: gpu.func @looked_up(
  // CHECK-SAME:      %[[TABLE:[a-z0-9]+]]: memref<100x96xbf16>
  // CHECK-COUNT-1:   memref.load %{{.+}} : memref<1x1xi64, strided<[8, 4], offset: ?>>
  // CHECK:           vector.load %[[TABLE]][%{{.+}}, %{{.+}}] {alignment = 4 : i64} : memref<100x96xbf16>, vector<2xbf16>
  // CHECK-NOT:       memref.load
  // CHECK:           gpu.return
  gpu.func @looked_up(%table: memref<100x96xbf16>, %rows: memref<2x8xi64>, %out: memref<2xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %t = gpu.thread_id x
    %row = memref.reinterpret_cast %rows to offset: [%t], sizes: [1, 1], strides: [8, 4] : memref<2x8xi64> to memref<1x1xi64, strided<[8, 4], offset: ?>>
    %first = arith.muli %t, %c2 : index
    %i = memref.load %row[%c0, %c0] : memref<1x1xi64, strided<[8, 4], offset: ?>>
    %r = arith.index_cast %i : i64 to index
    %0 = memref.load %table[%r, %first] : memref<100x96xbf16>
    %j = memref.load %row[%c0, %c0] : memref<1x1xi64, strided<[8, 4], offset: ?>>
    %s = arith.index_cast %j : i64 to index
    %second = arith.addi %first, %c1 : index
    %1 = memref.load %table[%s, %second] : memref<100x96xbf16>
    %2 = arith.addf %0, %1 : bf16
    memref.store %2, %out[%c0] : memref<2xbf16>
    gpu.return
  }

  // What is written between may be the number.
  // CHECK-LABEL: gpu.func @written_between(
  // CHECK-COUNT-2:   memref.load %{{.+}} : memref<2x1xf32, strided<[8, 4]>>
  // CHECK-NOT:       vector.
  // CHECK:           gpu.return
  gpu.func @written_between(%x: memref<2x8xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = memref.reinterpret_cast %x to offset: [0], sizes: [2, 1], strides: [8, 4] : memref<2x8xf32> to memref<2x1xf32, strided<[8, 4]>>
    %0 = memref.load %a[%c0, %c0] : memref<2x1xf32, strided<[8, 4]>>
    memref.store %0, %x[%i, %c1] : memref<2x8xf32>
    %1 = memref.load %a[%c0, %c0] : memref<2x1xf32, strided<[8, 4]>>
    memref.store %1, %x[%i, %c0] : memref<2x8xf32>
    gpu.return
  }
}
