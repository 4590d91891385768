// RUN: not magweld-opt --split-input-file %s 2>&1 | filecheck %s
// RUN: not magweld-opt --split-input-file %s -o %t.out 2> %t.err
// RUN: not test -e %t.out

// The line is the one in the file, and nothing is printed or written of the rest.

// CHECK-NOT: module
// CHECK:     split-input-error.mlir:15:3: error: 'func.return' op has 0 operands
func.func private @f()

// -----

func.func @g() -> i32 {
  // The error is on the next line.
  return
}
