// torch-mlir-opt reads scheduled and planned modules through the IRDL of the dialect. It
// lacks the gpu dialect: it takes gpu.yield for an operation it knows nothing of.
//
// REQUIRES: torch-mlir-opt
// RUN: magweld-opt --emit-irdl -o %t.irdl
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=scheduled %S/Inputs/linear-norm.mlir -o %t.scheduled
// RUN: magweld-opt --mlir-print-op-generic %t.scheduled | %torch-mlir-opt --irdl-file=%t.irdl --allow-unregistered-dialect | magweld-opt - | diff - %t.scheduled
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=planned %t.scheduled -o %t.planned
// RUN: magweld-opt --mlir-print-op-generic %t.planned | %torch-mlir-opt --irdl-file=%t.irdl --allow-unregistered-dialect | magweld-opt - | diff - %t.planned
//
// Stripped, a module needs neither.
// RUN: magweld-opt --strip-tile-graph %t.scheduled | %torch-mlir-opt | filecheck %s
// CHECK: linalg.matmul
