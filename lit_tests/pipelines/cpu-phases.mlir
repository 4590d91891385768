// From the torch dialect to object code for a CPU: what a module is at each phase, and
// that a phase which is printed and read again goes on as if it had not been.
//
// DEFINE: %{flags} = --device=%S/Inputs/small-cpu.toml#small-cpu --library=never --vector-bits=256 --vector-registers=16
// DEFINE: %{to} = magweld-opt %{flags} --compile-to
//
// RUN: %{to}=linalg %S/Inputs/linear-norm.mlir -o %t.linalg
// RUN: filecheck %s --check-prefix=LINALG --input-file %t.linalg
// RUN: %{to}=tile-graph --compile-from=linalg %t.linalg -o %t.tile-graph
// RUN: filecheck %s --check-prefix=GRAPH --input-file %t.tile-graph
// RUN: %{to}=scheduled --compile-from=tile-graph %t.tile-graph -o %t.scheduled
// RUN: filecheck %s --check-prefix=SCHEDULED --input-file %t.scheduled
// RUN: %{to}=planned --compile-from=scheduled %t.scheduled -o %t.planned
// RUN: filecheck %s --check-prefix=PLANNED --input-file %t.planned
// RUN: %{to}=tiled --compile-from=planned %t.planned -o %t.tiled
// RUN: filecheck %s --check-prefix=TILED --input-file %t.tiled
// RUN: %{to}=bufferized --compile-from=tiled %t.tiled -o %t.bufferized
// RUN: filecheck %s --check-prefix=BUFFERIZED --input-file %t.bufferized
// RUN: %{to}=vectorized --compile-from=bufferized %t.bufferized -o %t.vectorized
// RUN: filecheck %s --check-prefix=VECTORIZED --input-file %t.vectorized
// RUN: %{to}=llvm --compile-from=vectorized %t.vectorized -o %t.llvm
// RUN: filecheck %s --check-prefix=LLVM --input-file %t.llvm
// RUN: %{to}=llvm %S/Inputs/linear-norm.mlir | diff - %t.llvm
// RUN: %{to}=object %t.llvm -o %t.o
// RUN: %python -c "import sys; sys.stdout.write(open(sys.argv[1], 'rb').read().decode('latin1'))" %t.o | filecheck %s --check-prefix=OBJECT

// LINALG-LABEL: func.func @main(%arg0: tensor<16x32xf32>
// LINALG:         linalg.matmul
// LINALG:         tensor.expand_shape

// GRAPH-LABEL:  func.func @main
// GRAPH-SAME:     tile_graph.device = #tile_graph.device<"small-cpu"
// GRAPH-NOT:      tensor.expand_shape
// GRAPH:          "tile_graph.operator"
// GRAPH:          linalg.matmul
// GRAPH:          "tile_graph.connect"(%{{.+}}) {level = "dram"}
// GRAPH-NOT:      "tile_graph.subgraph"

// SCHEDULED:      "tile_graph.subgraph"
// SCHEDULED:      op_name = "matmul_0", tile = #tile_graph.tile<[8, 64]>
// SCHEDULED-NEXT: "tile_graph.connect"(%{{.+}}) {level = "l2"}
// SCHEDULED-NOT:  "tile_graph.subgraph"

// PLANNED:        "tile_graph.for_tiles"
// PLANNED:        "tile_graph.load"
// PLANNED-SAME:     place = #tile_graph.place<"l2"
// PLANNED:        "tile_graph.store"

// TILED-LABEL:  func.func @main
// TILED:          call @kernel_0
// TILED-LABEL:  func.func private @kernel_0
// TILED:          scf.forall (%{{.+}}) = (0) to (16) step (8)
// TILED-NOT:    @kernel_1

// BUFFERIZED-NOT:   @main
// BUFFERIZED-LABEL: func.func private @kernel_0(%arg0: memref<16x32xf32>
// BUFFERIZED-SAME:    %{{.+}}: index, %{{.+}}: index)
// BUFFERIZED:         scf.for
// BUFFERIZED:         linalg.generic
// BUFFERIZED:           arith.mulf

// VECTORIZED-LABEL: func.func
// VECTORIZED-NOT:     linalg.
// VECTORIZED:         vector.load
// VECTORIZED:         vector.store

// LLVM-LABEL: llvm.func @kernel_0(
// LLVM:         llvm.intr.sqrt
// LLVM-NOT:   memref.

// OBJECT: ELF
// OBJECT: kernel_0
