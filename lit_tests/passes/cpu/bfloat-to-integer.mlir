// RUN: magweld-opt --bfloat-to-integer %s | filecheck %s

// CHECK-LABEL: func.func @moves(
// CHECK-SAME:      %[[X:.+]]: memref<64xbf16>
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME:      %[[X:.+]]: memref<64xi16>, %[[Y:.+]]: memref<64xi16, strided<[2], offset: ?>>, %[[LO:.+]]: index, %[[C:.+]]: i1)
// CHECK:         %[[V:.+]] = vector.load %[[X]][%[[LO]]] : memref<64xi16>, vector<16xi16>
// CHECK-NEXT:    %[[W:.+]] = arith.extui %[[V]] : vector<16xi16> to vector<16xi32>
// CHECK:         %[[N:.+]] = arith.trunci
// CHECK-NEXT:    vector.store %[[N]], %[[X]][%[[LO]]] : memref<64xi16>, vector<16xi16>
// CHECK:         %[[ONE:.+]] = arith.constant 16256 : i16
// CHECK:         %[[LESS:.+]] = arith.constant dense<-16384> : vector<16xi16>
// CHECK:         vector.store %[[LESS]], %[[X]]
// CHECK:         %[[E:.+]] = memref.load %[[X]][%[[LO]]] : memref<64xi16>
// CHECK-NEXT:    %[[S:.+]] = arith.select %[[C]], %[[E]], %[[ONE]] : i16
// CHECK-NEXT:    memref.store %[[S]], %[[Y]][%[[LO]]] : memref<64xi16, strided<[2], offset: ?>>
func.func @moves(%x: memref<64xbf16>) {
  return
}

func.func @kernel(%x: memref<64xbf16>, %y: memref<64xbf16, strided<[2], offset: ?>>, %lo: index, %c: i1) attributes {tile_graph.kernel} {
  %v = vector.load %x[%lo] : memref<64xbf16>, vector<16xbf16>
  %b = arith.bitcast %v : vector<16xbf16> to vector<16xi16>
  %w = arith.extui %b : vector<16xi16> to vector<16xi32>
  %n = arith.trunci %w : vector<16xi32> to vector<16xi16>
  %r = arith.bitcast %n : vector<16xi16> to vector<16xbf16>
  vector.store %r, %x[%lo] : memref<64xbf16>, vector<16xbf16>
  %one = arith.constant 1.0 : bf16
  %less = arith.constant dense<-2.0> : vector<16xbf16>
  vector.store %less, %x[%lo] : memref<64xbf16>, vector<16xbf16>
  %e = memref.load %x[%lo] : memref<64xbf16>
  %s = arith.select %c, %e, %one : bf16
  memref.store %s, %y[%lo] : memref<64xbf16, strided<[2], offset: ?>>
  return
}

// What computes with bf16 stays as it is.
// CHECK-LABEL: func.func @computes(
// CHECK-SAME:      memref<64xbf16>
// CHECK:         arith.addf %{{.+}}, %{{.+}} : bf16
func.func @computes(%x: memref<64xbf16>, %lo: index) attributes {tile_graph.kernel} {
  %e = memref.load %x[%lo] : memref<64xbf16>
  %d = arith.addf %e, %e : bf16
  memref.store %d, %x[%lo] : memref<64xbf16>
  return
}

// A kernel whose arguments have no bf16, with a buffer that has.

// CHECK-LABEL: func.func @allocates(
// CHECK:         %[[A:.+]] = memref.alloc() : memref<64xi16>
// CHECK:         vector.store %{{.+}}, %[[A]]
func.func @allocates(%x: memref<64xf32>, %lo: index, %v: vector<16xi16>) attributes {tile_graph.kernel} {
  %a = memref.alloc() : memref<64xbf16>
  %r = arith.bitcast %v : vector<16xi16> to vector<16xbf16>
  vector.store %r, %a[%lo] : memref<64xbf16>, vector<16xbf16>
  return
}
