// Every flag that changes what is printed to stdout.

// RUN: magweld-opt %s | filecheck %s --check-prefix=PLAIN
// RUN: magweld-opt < %s | filecheck %s --check-prefix=PLAIN
// RUN: magweld-opt - < %s | filecheck %s --check-prefix=PLAIN
// PLAIN:      func.func @f(%arg0: i32) -> i32 {
// PLAIN-NEXT:   arith.addi

// RUN: magweld-opt --mlir-print-op-generic %s | filecheck %s --check-prefix=GENERIC
// GENERIC: "func.func"() <{function_type = (i32) -> i32

// RUN: magweld-opt --mlir-print-debuginfo %s | filecheck %s --check-prefix=DEBUGINFO
// DEBUGINFO: loc("{{.*}}options.mlir":

// RUN: magweld-opt --pass-pipeline='builtin.module(func.func(cse,canonicalize),symbol-dce)' %s | filecheck %s --check-prefix=PASSES
// RUN: magweld-opt --pass-pipeline='cse,canonicalize{max-iterations=3}' %s | filecheck %s --check-prefix=PASSES
// RUN: magweld-opt --cse --canonicalize=max-iterations=3 %s | filecheck %s --check-prefix=PASSES
// RUN: magweld-opt %s --canonicalize="max-iterations=3 top-down=0" --fold-transpose | filecheck %s --check-prefix=PASSES
// PASSES-NOT: arith.addi
// PASSES:     return %arg0

// RUN: magweld-opt %s -o %t.mlir
// RUN: filecheck %s --check-prefix=PLAIN --input-file=%t.mlir

// RUN: magweld-opt --version | filecheck %s --check-prefix=VERSION
// VERSION: magweld-opt {{[0-9]+\.[0-9]+}}

// RUN: magweld-opt --help | filecheck %s --check-prefix=HELP
// HELP: usage: magweld-opt
// HELP: --pass-pipeline

// RUN: magweld-opt --list-passes | filecheck %s --check-prefix=LIST
// LIST: --fold-transpose Fold `linalg.transpose` into the matrix products

// RUN: magweld-opt --emit-irdl | filecheck %s --check-prefix=IRDL
// IRDL: irdl.dialect @tile

func.func @f(%a: i32) -> i32 {
  %unused = arith.addi %a, %a : i32
  return %a : i32
}
