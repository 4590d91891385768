// RUN: not magweld-opt --pass-pipeline='builtin.module(cse,func.func(inline),canonicalize)' %s 2>&1 | filecheck %s

// A failure is located in the input and names its pass, upstream's too.

// CHECK: failing-pass.mlir:[[# @LINE + 3]]:1: error: 'func.func' op
// CHECK: failing-pass.mlir: note: in pass 'inline'
// CHECK-NOT: Traceback
func.func @f() {
  return
}
