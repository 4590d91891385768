// Phases of the compiler as flags, their errors, and the pipelines that they stand for.

// RUN: magweld-opt --list-phases | filecheck %s --check-prefix=LIST
// LIST:      cpu: torch, linalg, tile-graph, scheduled, planned, tiled, bufferized, vectorized, llvm, object
// LIST-NEXT: nvvm: torch, linalg, tile-graph, scheduled, planned, tiled, gpu, nvvm, binary
// LIST-NEXT: rocdl: torch, linalg, tile-graph, scheduled, planned, tiled, gpu, rocdl, binary
// LIST:      scheduled every edge has a memory level

// RUN: not magweld-opt --compile-to=sheduled %s 2>&1 | filecheck %s --check-prefix=UNKNOWN
// UNKNOWN: magweld-opt: error: argument --compile-to: unknown phase 'sheduled'; did you mean 'scheduled'?

// RUN: not magweld-opt --compile-to=gpu %s 2>&1 | filecheck %s --check-prefix=OTHER
// OTHER: magweld-opt: error: phase 'gpu' is not on the way to target 'cpu' but to nvvm, rocdl

// RUN: not magweld-opt --compile-to=linalg --compile-from=tiled %s 2>&1 | filecheck %s --check-prefix=ORDER
// ORDER: magweld-opt: error: phase 'linalg' is before phase 'tiled'

// RUN: not magweld-opt --compile-to=tiled --target=nvvm:sm_1 %s 2>&1 | filecheck %s --check-prefix=TARGET
// TARGET: magweld-opt: error: unknown target 'nvvm:sm_1'

// RUN: not magweld-opt --compile-to=tiled --compile-from=planned %s 2>&1 | filecheck %s --check-prefix=FROM
// FROM: error: 'builtin.module' op expected to be at phase 'planned', got 'linalg'
// FROM: note: in pass 'verify-phase'

// RUN: not magweld-opt --compile-to=tiled --cse %s 2>&1 | filecheck %s --check-prefix=BOTH
// BOTH: magweld-opt: error: --compile-to and --cse exclude each other

// RUN: not magweld-opt --device=a100 %s 2>&1 | filecheck %s --check-prefix=ALONE
// ALONE: magweld-opt: error: --device needs --compile-to

// RUN: not magweld-opt --compile-to=tiled --library=often %s 2>&1 | filecheck %s --check-prefix=VALUE
// VALUE: bad value for option 'library': expected one of auto, never, always, got 'often'

// Named pipelines are what the flags stand for; what they stand for themselves is text
// that can be run.
// RUN: magweld-opt --pass-pipeline='builtin.module(magweld-cpu{device=a100 library=never compile-to=tiled},cse)' --dump-pass-pipeline %s -o %t.named 2> %t.text
// RUN: filecheck %s --check-prefix=DUMP --input-file %t.text
// RUN: echo 'magweld-opt --pass-pipeline="$(cat $1)" $2' > %t.sh
// RUN: bash %t.sh %t.text %s | diff - %t.named
// RUN: magweld-opt --target=cpu --device=a100 --library=never --compile-to=tiled %s | diff - %t.named
// DUMP: builtin.module(verify-phase,outline-control,
// DUMP-SAME: form-tile-graph{device=a100}
// DUMP-SAME: plan-memory,cse)

// RUN: not magweld-opt --pass-pipeline='func.func(magweld-cpu)' %s 2>&1 | filecheck %s --check-prefix=NEST
// NEST: pass 'magweld-cpu' runs on builtin.module and cannot be nested under func.func

// RUN: not magweld-opt --magweld-gpu=compile-to=llvm %s 2>&1 | filecheck %s --check-prefix=GPU
// GPU: phase 'llvm' is not one of target 'nvvm:sm_80'; known: torch,

// RUN: not magweld-opt --magweld-cpu=compile-to=object %s 2>&1 | filecheck %s --check-prefix=OBJECT
// OBJECT: an object file is no module; magweld-opt --compile-to=object writes one

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
