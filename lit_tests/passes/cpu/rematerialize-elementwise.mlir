// RUN: magweld-opt --rematerialize-elementwise %s | filecheck %s
// RUN: magweld-opt --pass-pipeline="builtin.module(rematerialize-elementwise,linalg-fuse-elementwise-ops,canonicalize)" %s | filecheck %s --check-prefix=FUSED
// RUN: magweld-opt --pass-pipeline="builtin.module(rematerialize-elementwise,canonicalize,cse,linalg-fuse-elementwise-ops,canonicalize)" %s | filecheck %s --check-prefix=FUSED

#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The centred row is made again for the sum of squares and for the result.
//
// CHECK-LABEL: func.func @norm(
// CHECK:         %[[A:.+]] = linalg.generic
// CHECK:           arith.subf
// CHECK:         %[[B:.+]] = linalg.generic
// CHECK:           arith.subf
// CHECK:         linalg.generic {{.*}} ins(%[[B]] :
// CHECK:         linalg.generic {{.*}} ins(%[[A]],
//
// FUSED-LABEL: func.func @norm(
// FUSED-SAME:      %[[X:[a-z0-9]+]]: tensor<4x64xf32>, %[[MEAN:[a-z0-9]+]]: tensor<4xf32>
// FUSED:         linalg.generic {{.*}} ins(%[[X]], %[[MEAN]] :
// FUSED:           arith.subf
// FUSED-NEXT:      arith.mulf
// FUSED:         linalg.generic {{.*}} ins(%[[X]], %[[MEAN]],
// FUSED:           arith.subf
// FUSED-NEXT:      arith.mulf
// FUSED-NOT:     linalg.generic
// FUSED:         return
func.func @norm(%x: tensor<4x64xf32>, %mean: tensor<4xf32>, %sum: tensor<4xf32>) -> tensor<4x64xf32> attributes {tile_graph.kernel} {
  %e = tensor.empty() : tensor<4x64xf32>
  %c = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %mean : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %v = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<4x64xf32>) outs(%sum : tensor<4xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.mulf %p, %p : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %v : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// A function is dear, two tensors are twice the loads: those stay.
//
// CHECK-LABEL: func.func @dear(
// CHECK-COUNT-1: math.exp
// CHECK-NOT:     math.exp
// CHECK-COUNT-1: arith.subf
// CHECK-NOT:     arith.subf
// CHECK:         return
func.func @dear(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>, %sum: tensor<4xf32>) -> (tensor<4x64xf32>, tensor<4xf32>, tensor<4x64xf32>, tensor<4xf32>) attributes {tile_graph.kernel} {
  %e = tensor.empty() : tensor<4x64xf32>
  %c = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %d = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x64xf32>, tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %b = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<4x64xf32>) outs(%sum : tensor<4xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %u, %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %g = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<4x64xf32>) outs(%sum : tensor<4xf32>) {
  ^bb0(%p: f32, %u: f32):
    %0 = arith.addf %u, %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %a, %b, %f, %g : tensor<4x64xf32>, tensor<4xf32>, tensor<4x64xf32>, tensor<4xf32>
}
