// RUN: magweld-opt --split-input-file --expand-bfloat %s | filecheck %s
// RUN: magweld-opt --split-input-file --expand-bfloat=bf16-pairs=true %s | filecheck --check-prefix=PAIRS %s

// A sum that is rounded and used again stays in its lane. All of f32 comes from bf16, so
// that no NaN needs a look.

// CHECK-LABEL: func.func @between(
// CHECK-NOT:     arith.cmpf
// CHECK:         %[[B:.+]] = vector.load %{{.+}} : memref<64xbf16>, vector<16xbf16>
// CHECK:         %[[I:.+]] = arith.bitcast %[[B]] : vector<16xbf16> to vector<16xi16>
// CHECK-NEXT:    %[[W:.+]] = arith.extui %[[I]] : vector<16xi16> to vector<16xi32>
// CHECK:         %[[L:.+]] = arith.shli %[[W]], %{{.+}} : vector<16xi32>
// CHECK-NEXT:    %[[X:.+]] = arith.bitcast %[[L]] : vector<16xi32> to vector<16xf32>
// CHECK-NEXT:    %[[S:.+]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT:    %[[BITS:.+]] = arith.bitcast %[[S]] : vector<16xf32> to vector<16xi32>
// CHECK:         %[[HIGH:.+]] = arith.shrui %[[BITS]]
// CHECK:         %[[ODD:.+]] = arith.andi %[[HIGH]]
// CHECK:         %[[MORE:.+]] = arith.addi %[[ODD]]
// CHECK:         %[[SUM:.+]] = arith.addi %[[BITS]], %[[MORE]]
// CHECK-NOT:     arith.trunci
// CHECK:         %[[MASK:.+]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK-NEXT:    %[[R:.+]] = arith.andi %[[SUM]], %[[MASK]]
// CHECK-NEXT:    %[[Y:.+]] = arith.bitcast %[[R]] : vector<16xi32> to vector<16xf32>
// CHECK-NEXT:    %[[Z:.+]] = arith.mulf %[[Y]], %[[X]]
// CHECK:         %[[T:.+]] = arith.trunci %{{.+}} : vector<16xi32> to vector<16xi16>
// CHECK-NEXT:    %[[O:.+]] = arith.bitcast %[[T]] : vector<16xi16> to vector<16xbf16>
// CHECK-NEXT:    vector.store %[[O]]
// CHECK-NOT:     arith.truncf
// CHECK-NOT:     arith.extf

// Words of a register are added by one instruction.

// PAIRS-LABEL: func.func @between(
// PAIRS:         %[[BITS:.+]] = arith.bitcast %{{.+}} : vector<16xf32> to vector<16xi32>
// PAIRS:         %[[ODD:.+]] = arith.andi %[[BITS]], %{{.+}} : vector<16xi32>
// PAIRS:         %[[BOTH:.+]] = arith.ori %[[ODD]], %{{.+}} : vector<16xi32>
// PAIRS-NEXT:    %[[HALVES:.+]] = vector.bitcast %[[BOTH]] : vector<16xi32> to vector<32xi16>
// PAIRS:         %[[MORE:.+]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"(%[[HALVES]], %{{.+}})
// PAIRS-NEXT:    arith.addi %[[BITS]], %[[MORE]]
func.func @between(%x: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %b = vector.load %x[%i] : memref<64xbf16>, vector<16xbf16>
  %w = arith.extf %b : vector<16xbf16> to vector<16xf32>
  %s = arith.addf %w, %w : vector<16xf32>
  %r = arith.truncf %s : vector<16xf32> to vector<16xbf16>
  %y = arith.extf %r : vector<16xbf16> to vector<16xf32>
  %z = arith.mulf %y, %w : vector<16xf32>
  %o = arith.truncf %z : vector<16xf32> to vector<16xbf16>
  vector.store %o, %x[%i] : memref<64xbf16>, vector<16xbf16>
  return
}

// -----

// Vectors that fill no register, and scalars, have no such instruction.

// PAIRS-LABEL: func.func @short(
// PAIRS-NOT:     llvm.call_intrinsic
// PAIRS:         return
func.func @short(%x: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %b = vector.load %x[%i] : memref<64xbf16>, vector<8xbf16>
  %w = arith.extf %b : vector<8xbf16> to vector<8xf32>
  %s = arith.addf %w, %w : vector<8xf32>
  %r = arith.truncf %s : vector<8xf32> to vector<8xbf16>
  vector.store %r, %x[%i] : memref<64xbf16>, vector<8xbf16>
  %e = memref.load %x[%i] : memref<64xbf16>
  %f = arith.extf %e : bf16 to f32
  %t = arith.mulf %f, %f : f32
  %u = arith.truncf %t : f32 to bf16
  memref.store %u, %x[%i] : memref<64xbf16>
  return
}

// -----

// The greater of numbers that bf16 holds is one of them; what is greater than a number
// that it does not hold is rounded.

// CHECK-LABEL: func.func @holds(
// CHECK:         %[[M:.+]] = arith.maximumf
// CHECK-NEXT:    %[[B:.+]] = arith.bitcast %[[M]] : f32 to i32
// CHECK-NEXT:    %[[SIXTEEN:.+]] = arith.constant 16 : i32
// CHECK-NEXT:    %[[H:.+]] = arith.shrui %[[B]], %[[SIXTEEN]] : i32
// CHECK-NEXT:    %[[T:.+]] = arith.trunci %[[H]] : i32 to i16
// CHECK:         %[[N:.+]] = arith.maximumf
// CHECK-NEXT:    %[[C:.+]] = arith.bitcast %[[N]] : f32 to i32
// CHECK:         arith.addi %[[C]]
func.func @holds(%x: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %one = arith.constant 1.0 : f32
  %third = arith.constant 0.333333343 : f32
  %e = memref.load %x[%i] : memref<64xbf16>
  %f = arith.extf %e : bf16 to f32
  %m = arith.maximumf %f, %one : f32
  %u = arith.truncf %m : f32 to bf16
  memref.store %u, %x[%i] : memref<64xbf16>
  %n = arith.maximumf %f, %third : f32
  %v = arith.truncf %n : f32 to bf16
  memref.store %v, %x[%i] : memref<64xbf16>
  return
}

// -----

// A NaN from memory of others may have bits in its low half, also one made of f16. A
// kernel's own memory holds what the kernel has written.

// CHECK-LABEL: func.func @others(
// CHECK:         %[[F:.+]] = memref.load %{{.+}} : memref<64xf32>
// CHECK:         %[[NAN:.+]] = arith.cmpf uno, %[[F]], %[[F]] : f32
// CHECK:         arith.select %[[NAN]]
func.func @others(%x: memref<64xf32>, %y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %f = memref.load %x[%i] : memref<64xf32>
  %u = arith.truncf %f : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}

// CHECK-LABEL: func.func @from_f16(
// CHECK:         arith.extf %{{.+}} : f16 to f32
// CHECK:         arith.cmpf uno
func.func @from_f16(%x: memref<64xf16>, %y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %e = memref.load %x[%i] : memref<64xf16>
  %f = arith.extf %e : f16 to f32
  %u = arith.truncf %f : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}

// CHECK-LABEL: func.func @from_bits(
// CHECK:         arith.cmpf uno
func.func @from_bits(%x: memref<64xi32>, %y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %e = memref.load %x[%i] : memref<64xi32>
  %f = arith.bitcast %e : i32 to f32
  %u = arith.truncf %f : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}

// CHECK-LABEL: func.func @own(
// CHECK-NOT:     arith.cmpf
// CHECK:         return
func.func @own(%y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %a = memref.alloca() : memref<256xi8>
  %zero = arith.constant 0 : index
  %v = memref.view %a[%zero][] : memref<256xi8> to memref<64xf32>
  %f = memref.load %v[%i] : memref<64xf32>
  %s = arith.addf %f, %f : f32
  %u = arith.truncf %s : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}

// -----

// What is no kernel, and what is rounded to or from another type, is left alone.

// CHECK-LABEL: func.func @host(
// CHECK:         arith.truncf %{{.+}} : f32 to bf16
func.func @host(%x: f32) -> bf16 {
  %u = arith.truncf %x : f32 to bf16
  return %u : bf16
}

// CHECK-LABEL: func.func @narrower(
// CHECK:         arith.truncf %{{.+}} : f32 to f16
// CHECK:         arith.truncf %{{.+}} : f64 to f32
func.func @narrower(%x: memref<64xf32>, %y: memref<64xf16>, %z: memref<64xf64>, %i: index) attributes {tile_graph.kernel} {
  %f = memref.load %x[%i] : memref<64xf32>
  %u = arith.truncf %f : f32 to f16
  memref.store %u, %y[%i] : memref<64xf16>
  %d = memref.load %z[%i] : memref<64xf64>
  %s = arith.truncf %d : f64 to f32
  memref.store %s, %x[%i] : memref<64xf32>
  return
}

// -----

// A NaN is followed through loops and memory of the kernel; what is rounded is known
// again, and so is what is made of it.

// CHECK-LABEL: func.func @followed(
// CHECK:         scf.for
// CHECK:         vector.store
// CHECK:         %[[V:.+]] = vector.load %{{.+}} : memref<16xf32>, vector<16xf32>
// CHECK:         arith.cmpf uno, %[[V]], %[[V]]
// CHECK-NOT:     arith.cmpf
// CHECK:         return
func.func @followed(%x: memref<64xf32>, %y: memref<64xbf16>, %i: index, %n: index) attributes {tile_graph.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.constant dense<0.0> : vector<16xf32>
  %a = memref.alloca() : memref<16xf32>
  %s = scf.for %k = %zero to %n step %one iter_args(%acc = %first) -> vector<16xf32> {
    %f = vector.load %x[%k] : memref<64xf32>, vector<16xf32>
    %t = arith.addf %acc, %f : vector<16xf32>
    scf.yield %t : vector<16xf32>
  }
  vector.store %s, %a[%zero] : memref<16xf32>, vector<16xf32>
  %v = vector.load %a[%zero] : memref<16xf32>, vector<16xf32>
  %u = arith.truncf %v : vector<16xf32> to vector<16xbf16>
  %w = arith.extf %u : vector<16xbf16> to vector<16xf32>
  %d = arith.mulf %w, %w : vector<16xf32>
  %e = arith.truncf %d : vector<16xf32> to vector<16xbf16>
  vector.store %e, %y[%i] : memref<64xbf16>, vector<16xbf16>
  return
}

// -----

// Memory that is copied as a whole may hold anything.

// CHECK-LABEL: func.func @copied(
// CHECK:         arith.cmpf uno
func.func @copied(%x: memref<64xf32>, %y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %a = memref.alloca() : memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  %f = memref.load %a[%i] : memref<64xf32>
  %u = arith.truncf %f : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}

// -----

// CHECK-LABEL: func.func @given(
// CHECK:         arith.cmpf uno
func.func @given(%x: f32, %y: memref<64xbf16>, %i: index) attributes {tile_graph.kernel} {
  %f = arith.addf %x, %x : f32
  %u = arith.truncf %f : f32 to bf16
  memref.store %u, %y[%i] : memref<64xbf16>
  return
}
