// RUN: magweld-opt --split-input-file --expand-math --canonicalize %s | filecheck %s
// RUN: magweld-opt --split-input-file --expand-math=bf16-pairs=true %s | filecheck --check-prefix=LOOK %s

// CHECK-LABEL: func.func @twice(
// CHECK:         call @exp_16xf32(
// CHECK:         call @exp_16xf32(
// CHECK-NOT:     math.exp
func.func @twice(%x: vector<16xf32>) -> vector<16xf32> attributes {tile_graph.kernel} {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  return %1 : vector<16xf32>
}

// CHECK-LABEL: func.func @powers(
// CHECK-SAME:      %[[X:.+]]: vector<4xf32>
// CHECK:         %[[SQUARE:.+]] = arith.mulf %[[X]], %[[X]]
// CHECK:         %[[CUBE:.+]] = arith.mulf %[[SQUARE]], %[[X]]
// CHECK:         %[[ROOT:.+]] = math.sqrt %[[CUBE]]
// CHECK:         math.powf %[[ROOT]]
func.func @powers(%x: vector<4xf32>) -> vector<4xf32> attributes {tile_graph.kernel} {
  %three = arith.constant dense<3.0> : vector<4xf32>
  %half = arith.constant dense<0.5> : vector<4xf32>
  %other = arith.constant dense<0.7> : vector<4xf32>
  %0 = math.powf %x, %three : vector<4xf32>
  %1 = math.powf %0, %half : vector<4xf32>
  %2 = math.powf %1, %other : vector<4xf32>
  return %2 : vector<4xf32>
}

// Double precision is left to the C library.
// CHECK-LABEL: func.func @double(
// CHECK:         math.tanh
func.func @double(%x: f64) -> f64 attributes {tile_graph.kernel} {
  %0 = math.tanh %x : f64
  return %0 : f64
}

// The expansion is made once for each number of lanes, without a call or a branch.
// CHECK-LABEL: func.func private @exp_16xf32(
// CHECK-SAME:      %[[X:.+]]: vector<16xf32>) -> vector<16xf32> attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["alwaysinline"]}
// CHECK-COUNT-8: math.fma
// CHECK-NOT:     math.exp

// -----

// Coefficients of erf are looked up by sixteen lanes where the CPU has the instruction,
// also those of shorter and longer vectors and of numbers.

// LOOK-LABEL: func.func @error_functions(
// LOOK:         math.erf %{{.+}} : f64
// LOOK-LABEL: func.func private @erf_8xf32(
// LOOK-COUNT-6: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%{{.+}}, %{{.+}}) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
// LOOK-NOT:     llvm.call_intrinsic
// LOOK:         return %{{.+}} : vector<8xf32>
// LOOK-LABEL: func.func private @erf_1xf32(
// LOOK-COUNT-6: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// LOOK-NOT:     llvm.call_intrinsic
// LOOK:         return %{{.+}} : f32
// LOOK-LABEL: func.func private @erf_32xf32(
// LOOK-COUNT-12: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// LOOK-NOT:     llvm.call_intrinsic
// LOOK:         return %{{.+}} : vector<32xf32>
// CHECK-NOT:    llvm.call_intrinsic
func.func @error_functions(%x: vector<8xf32>, %y: f32, %z: vector<32xf32>, %d: f64) attributes {tile_graph.kernel} {
  %0 = math.erf %x : vector<8xf32>
  %1 = math.erf %y : f32
  %2 = math.erf %z : vector<32xf32>
  %3 = math.erf %d : f64
  return
}

// -----

// So are those of tanh, which has eight in each part.

// LOOK-LABEL: func.func @tangents(
// LOOK:         math.tanh %{{.+}} : f64
// LOOK-LABEL: func.func private @tanh_16xf32(
// LOOK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(
// LOOK-NOT:     llvm.call_intrinsic
// LOOK-NOT:     arith.divf
// LOOK:         return %{{.+}} : vector<16xf32>
// CHECK-LABEL: func.func @tangents(
// CHECK:         arith.divf
// CHECK-NOT:     llvm.call_intrinsic
func.func @tangents(%x: vector<16xf32>, %d: f64) attributes {tile_graph.kernel} {
  %0 = math.tanh %x : vector<16xf32>
  %1 = math.tanh %d : f64
  return
}

// -----

// Powers of two are multiplied by in one instruction where the CPU has it: no integer is
// made of exponents.

// LOOK-LABEL: func.func @exponentials(
// LOOK-LABEL: func.func private @exp_16xf32(
// LOOK-COUNT-8: math.fma
// LOOK:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(
// LOOK-NOT:     arith.shli
// LOOK:         return %{{.+}} : vector<16xf32>
// LOOK-LABEL: func.func private @exp2_4xf32(
// LOOK:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.128"(
// LOOK:         return %{{.+}} : vector<4xf32>
func.func @exponentials(%x: vector<16xf32>, %y: vector<4xf32>) attributes {tile_graph.kernel} {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp2 %y : vector<4xf32>
  return
}
