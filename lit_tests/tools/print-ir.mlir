// RUN: magweld-opt --cse --fold-transpose --mlir-print-ir-before-all %s -o %t.mlir 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: magweld-opt --cse --fold-transpose --mlir-print-ir-after-all %s -o %t.mlir 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: magweld-opt --cse --fold-transpose --mlir-timing %s -o %t.mlir 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: magweld-opt --cse --fold-transpose --mlir-print-ir-tree-dir=%t.tree %s -o %t.mlir
// RUN: filecheck %s --check-prefix=TREE --input-file=%t.tree/builtin_module_no-symbol-name/1_fold-transpose.mlir

// BEFORE:     IR Dump Before CSEPass: cse
// BEFORE:     func.func @f
// BEFORE:     IR Dump Before FoldTranspose: fold-transpose
// BEFORE-NOT: IR Dump After

// AFTER-NOT:  IR Dump Before
// AFTER:      IR Dump After CSEPass: cse
// AFTER:      IR Dump After FoldTranspose: fold-transpose
// AFTER:      func.func @f

// TIMING: Execution time report
// TIMING: CSEPass
// TIMING: FoldTranspose

// TREE: func.func @f
func.func @f() {
  return
}
