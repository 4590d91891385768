// IREE compiles what is scheduled, and what is tiled once its loops over tiles are
// sequential: it takes no scf.forall outside of what it forms itself.
//
// REQUIRES: iree-compile
// DEFINE: %{iree} = %iree-compile --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=generic
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=scheduled %S/Inputs/linear-norm.mlir -o %t.scheduled
// RUN: magweld-opt --strip-tile-graph %t.scheduled -o %t.stripped
// RUN: %{iree} %t.stripped -o %t.scheduled.vmfb
// RUN: magweld-opt --target=nvvm:sm_80 --compile-to=tiled %t.scheduled | magweld-opt --tensor-forall-to-for --strip-tile-graph -o %t.sequential -
// RUN: %{iree} %t.sequential -o %t.tiled.vmfb
