// The result of every CPU phase, stripped, is read by the tools of an LLVM release; the
// last one is translated to LLVM IR.
//
// REQUIRES: mlir-opt, mlir-translate
// DEFINE: %{flags} = --device=%S/Inputs/small-cpu.toml#small-cpu --library=never --vector-bits=256 --vector-registers=16
// DEFINE: %{to} = magweld-opt %{flags} --compile-to
//
// RUN: %{to}=linalg %S/Inputs/linear-norm.mlir -o %t.linalg
// RUN: magweld-opt --strip-tile-graph %t.linalg | %mlir-opt -o /dev/null
// RUN: %{to}=tile-graph %t.linalg -o %t.graph
// RUN: magweld-opt --strip-tile-graph %t.graph | %mlir-opt --canonicalize --cse | filecheck %s --check-prefix=STRIPPED
// RUN: %{to}=scheduled %t.graph -o %t.scheduled
// RUN: magweld-opt --strip-tile-graph %t.scheduled | %mlir-opt --canonicalize --cse | filecheck %s --check-prefix=STRIPPED
// RUN: %{to}=tiled %t.scheduled -o %t.tiled
// RUN: magweld-opt --strip-tile-graph %t.tiled | %mlir-opt | filecheck %s --check-prefix=TILED
// RUN: %{to}=bufferized %t.tiled -o %t.bufferized
// RUN: magweld-opt --strip-tile-graph %t.bufferized | %mlir-opt -o /dev/null
// RUN: %{to}=vectorized %t.bufferized -o %t.vectorized
// RUN: magweld-opt --strip-tile-graph %t.vectorized | %mlir-opt -o /dev/null
// RUN: %{to}=llvm %t.vectorized | magweld-opt --strip-tile-graph - | %mlir-opt | %mlir-translate --mlir-to-llvmir | filecheck %s --check-prefix=IR
//
// With the IRDL of the dialect nothing has to be stripped, plans included.
// RUN: magweld-opt --emit-irdl -o %t.irdl
// RUN: %mlir-opt --irdl-file=%t.irdl %t.scheduled | magweld-opt - | diff - %t.scheduled
// RUN: %{to}=planned %t.scheduled -o %t.planned
// RUN: %mlir-opt --irdl-file=%t.irdl %t.planned | magweld-opt - | diff - %t.planned

// STRIPPED-LABEL: func.func @main(
// STRIPPED-NOT:     tile_graph
// STRIPPED:         linalg.matmul
// TILED-LABEL:    func.func private @kernel_0(
// TILED:            scf.forall
// IR:             define void @kernel_0(
