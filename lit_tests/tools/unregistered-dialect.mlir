// RUN: magweld-opt --allow-unregistered-dialect %s | filecheck %s
// RUN: not magweld-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED

// CHECK: "foo.bar"() : () -> ()
// REFUSED: unregistered-dialect.mlir:[[# @LINE + 1]]:10: error: operation being parsed with an unregistered dialect
"foo.bar"() : () -> ()
