// RUN: not magweld-opt %s --batch-kernels=minimum=1 2>&1 | filecheck %s --check-prefix=ONE
// RUN: not magweld-opt %s --batch-kernels="minimum=4 maximum=3" 2>&1 | filecheck %s --check-prefix=MOST

// ONE: expected at least two members, got 1
// MOST: expected a maximum of at least 4, got 3
