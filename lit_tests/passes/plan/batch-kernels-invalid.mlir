// RUN: not magweld-opt %s --batch-kernels=minimum=1 2>&1 | filecheck %s --check-prefix=ONE
// RUN: not magweld-opt %s --batch-kernels="minimum=3 maximum=2" 2>&1 | filecheck %s --check-prefix=MOST
// RUN: not magweld-opt %s --batch-kernels=depth=-1 2>&1 | filecheck %s --check-prefix=DEPTH
// RUN: not magweld-opt %s --batch-kernels=rules=no-such-rule 2>&1 | filecheck %s --check-prefix=RULE

// ONE: expected at least two members, got 1
// MOST: expected a maximum of at least 3, got 2
// DEPTH: expected a depth of at least 0, got -1
// RULE: no batch rule 'no-such-rule' is installed
func.func @main() {
  return
}
