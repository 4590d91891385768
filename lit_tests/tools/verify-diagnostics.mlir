// RUN: magweld-opt --split-input-file --verify-diagnostics %s

func.func @same_line() -> i32 {
  return // expected-error {{'func.return' op has 0 operands}}
}

// -----

func.func @next_line() -> i32 {
  // expected-error@+1 {{'func.return' op has 0 operands}}
  return
}

// -----

func.func @lines_before() -> i32 {
  return
}
// expected-error@-2 {{has 0 operands, but enclosing function (@lines_before)}}

// -----

func.func @below() -> i32 {
  // expected-error@below {{has 0 operands}}
  return
}

// -----

func.func @above() -> i32 {
  return
  // expected-error@above {{has 0 operands}}
}

// -----

func.func @regex() -> i32 {
  // expected-error-re@+1 {{has {{[0-9]+}} operands, but enclosing {{f.*n}} (@regex)}}
  return
}

// -----

// expected-note@+1 {{see existing symbol definition here}}
func.func private @twice()
// expected-error@+1 {{redefinition of symbol named 'twice'}}
func.func private @twice()
