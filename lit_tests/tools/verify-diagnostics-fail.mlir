// RUN: not magweld-opt --split-input-file --verify-diagnostics %s 2>&1 | filecheck %s

// CHECK: verify-diagnostics-fail.mlir:[[# @LINE + 2]]:3: error: unexpected error: 'func.return' op has 0 operands
func.func @nobody_expects_it() -> i32 {
  return
}

// -----

// CHECK: verify-diagnostics-fail.mlir:[[# @LINE + 1]]:4: error: expected error "never comes" was not produced
// expected-error@+1 {{never comes}}
func.func private @f()

// -----

// CHECK: verify-diagnostics-fail.mlir:[[# @LINE + 4]]:3: error: unexpected error: 'func.return' op has 0 operands
// CHECK: verify-diagnostics-fail.mlir:[[# @LINE + 2]]:6: error: expected warning "has 0 operands" was not produced
func.func @wrong_severity() -> i32 {
  // expected-warning@+1 {{has 0 operands}}
  return
}

// -----

// CHECK: verify-diagnostics-fail.mlir:[[# @LINE + 1]]:4: error: bad regular expression
// expected-error-re {{a{{(}}b}}
func.func private @g()
