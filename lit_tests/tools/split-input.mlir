// RUN: magweld-opt --split-input-file %s | filecheck %s
// RUN: not magweld-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE

// One name in two chunks is no clash, and the output is split again.

// CHECK:      func.func private @f()
// CHECK:      // -----
// CHECK:      func.func private @f()
// WHOLE: error: redefinition of symbol named 'f'
func.func private @f()

// -----

func.func private @f()
