// Whatever is wrong with the command line: one error that shows the place, and exit
// code 1.

// RUN: not magweld-opt --pass-pipeline='builtin.module(func.func(cze))' %s 2>&1 | filecheck %s --check-prefix=PASS
// PASS:      <pipeline>:1:26: error: 'cze' does not refer to a registered pass or pass pipeline
// PASS-NEXT: builtin.module(func.func(cze))
// PASS-NEXT: {{^ {25}\^\^\^$}}

// RUN: not magweld-opt --fold-transposes %s 2>&1 | filecheck %s --check-prefix=HINT
// HINT: <pipeline>:1:1: error: {{.*}}; did you mean 'fold-transpose'?

// RUN: not magweld-opt --pass-pipeline='cse,fold-transpose{speed=9}' %s 2>&1 | filecheck %s --check-prefix=OPTION
// OPTION: <pipeline>:1:20: error: unknown option 'speed'

// RUN: not magweld-opt --canonicalize=max-iterations=many %s 2>&1 | filecheck %s --check-prefix=VALUE
// VALUE: <pipeline>:1:1: error:
// VALUE: 'many' value invalid

// RUN: not magweld-opt --pass-pipeline='gpu.module(fold-transpose)' %s 2>&1 | filecheck %s --check-prefix=NEST
// NEST: <pipeline>:1:12: error: pass 'fold-transpose' runs on builtin.module or func.func and cannot be nested under gpu.module

// Native code would abort the process on this one.
// RUN: not magweld-opt --pass-pipeline='func.func(sparsifier)' %s 2>&1 | filecheck %s --check-prefix=ABORT
// ABORT: <pipeline>:1:11: error: Can't add pass

// RUN: not magweld-opt --pass-pipeline='builtin.module(cse' %s 2>&1 | filecheck %s --check-prefix=OPEN
// OPEN: <pipeline>:1:15: error: '(' is never closed

// RUN: not magweld-opt %s.missing 2>&1 | filecheck %s --check-prefix=MISSING
// MISSING: magweld-opt: error: cannot read {{.*}}errors.mlir.missing: No such file or directory

// RUN: not magweld-opt %s -o %t/no/such/folder 2>&1 | filecheck %s --check-prefix=OUTPUT
// OUTPUT: magweld-opt: error: cannot write {{.*}}folder: No such file or directory

// RUN: not magweld-opt --cse --pass-pipeline=cse %s 2>&1 | filecheck %s --check-prefix=BOTH
// BOTH: magweld-opt: error: --pass-pipeline and --cse exclude each other

// RUN: not magweld-opt --verify-each=maybe %s 2>&1 | filecheck %s --check-prefix=FLAG
// FLAG: magweld-opt: error: argument --verify-each: expected 0 or 1, got 'maybe'

// RUN: not magweld-opt -x %s 2>&1 | filecheck %s --check-prefix=SHORT
// SHORT: magweld-opt: error: unexpected argument '-x'

func.func private @f()
