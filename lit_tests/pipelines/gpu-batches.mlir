// Equal operators on three tensors are one kernel and one launch, of as many rows of blocks
// as there are members, on each GPU that a plan is made for.
//
// DEFINE: %{to} = magweld-opt --pass-pipeline
// RUN: %{to}="builtin.module(magweld-gpu{target=nvvm:sm_80@v100 compile-to=tiled batch=true})" %s | filecheck %s
// RUN: %{to}="builtin.module(magweld-gpu{target=nvvm:sm_90a@h100 compile-to=tiled batch=true})" %s | filecheck %s
// RUN: %{to}="builtin.module(magweld-gpu{target=rocdl:gfx942 compile-to=tiled batch=true})" %s | filecheck %s
//
// One member for each launch, where that is asked for.
// RUN: %{to}="builtin.module(magweld-gpu{target=nvvm:sm_90a@h100 compile-to=tiled batch=false})" %s | filecheck %s --check-prefix=APART

// CHECK-LABEL: func.func @main(
// CHECK:         call @batch_0(
// CHECK-NOT:     call
// CHECK:       func.func private @kernel_0(%{{.+}}: tensor<32x64xf32>, %{{.+}}: tensor<32x64xf32>)
// CHECK-NOT:   @kernel_1
// CHECK:       magweld.batch = {kernel = @kernel_0, members = 3 : i64}
// APART-NOT:   @batch
// APART-COUNT-3: call @kernel_0(
// APART-NOT:   call

#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x0: tensor<32x64xf32>, %x1: tensor<32x64xf32>, %x2: tensor<32x64xf32>)
    -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = tensor.empty() : tensor<32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %s0 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x0 : tensor<32x64xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%p: f32, %o: f32):
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  %r0 = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %s0 : tensor<32x64xf32>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<32x64xf32>
  %s1 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x1 : tensor<32x64xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%p: f32, %o: f32):
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  %r1 = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x1, %s1 : tensor<32x64xf32>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<32x64xf32>
  %s2 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x2 : tensor<32x64xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%p: f32, %o: f32):
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  %r2 = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x2, %s2 : tensor<32x64xf32>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<32x64xf32>
  return %r0, %r1, %r2 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
}
