// RUN: magweld-opt --split-input-file --verify-diagnostics --tensor-forall-to-for %s | filecheck %s
// RUN: magweld-opt --split-input-file --verify-diagnostics --tensor-forall-to-for %s | not grep scf.forall

// Two dimensions and two results, one of which the body reads.
//
// CHECK-LABEL: func.func @two
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[A:.+]]: tensor<8x4xf32>, %[[B:.+]]: tensor<8x4xf32>)
// CHECK:         %[[R:.+]]:2 = scf.for %[[I:.+]] = %c0{{.*}} to %c8{{.*}} step %c2{{.*}} iter_args(%[[OA:.+]] = %[[A]], %[[OB:.+]] = %[[B]])
// CHECK:           %[[S:.+]]:2 = scf.for %[[J:.+]] = %c0{{.*}} to %c4{{.*}} step %c1{{.*}} iter_args(%[[IA:.+]] = %[[OA]], %[[IB:.+]] = %[[OB]])
// CHECK:             %[[T:.+]] = tensor.extract_slice %[[X]][%[[I]], %[[J]]] [2, 1] [1, 1]
// CHECK:             %[[D:.+]] = tensor.extract_slice %[[IA]][%[[I]], %[[J]]]
// CHECK:             %[[E:.+]] = linalg.exp ins(%[[T]] : {{.+}}) outs(%[[D]] :
// CHECK:             %[[NA:.+]] = tensor.insert_slice %[[E]] into %[[IA]][%[[I]], %[[J]]] [2, 1] [1, 1]
// CHECK:             %[[NB:.+]] = tensor.insert_slice %[[T]] into %[[IB]][%[[I]], %[[J]]] [2, 1] [1, 1]
// CHECK:             scf.yield %[[NA]], %[[NB]]
// CHECK:           scf.yield %[[S]]#0, %[[S]]#1
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @two(%x: tensor<8x4xf32>, %a: tensor<8x4xf32>, %b: tensor<8x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %r:2 = scf.forall (%i, %j) = (0, 0) to (8, 4) step (2, 1)
      shared_outs(%o = %a, %p = %b) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %t = tensor.extract_slice %x[%i, %j] [2, 1] [1, 1] : tensor<8x4xf32> to tensor<2x1xf32>
    %d = tensor.extract_slice %o[%i, %j] [2, 1] [1, 1] : tensor<8x4xf32> to tensor<2x1xf32>
    %e = linalg.exp ins(%t : tensor<2x1xf32>) outs(%d : tensor<2x1xf32>) -> tensor<2x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %o[%i, %j] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<8x4xf32>
      tensor.parallel_insert_slice %t into %p[%i, %j] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<8x4xf32>
    }
  }
  return %r#0, %r#1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// The number of trips is rounded up; the loop ends where the forall does.
//
// CHECK-LABEL: func.func @ragged
// CHECK:         scf.for %{{.+}} = %c1{{.*}} to %c10{{.*}} step %c4
func.func @ragged(%a: tensor<16xf32>) -> tensor<16xf32> {
  %r = scf.forall (%i) = (1) to (10) step (4) shared_outs(%o = %a) -> (tensor<16xf32>) {
    %d = tensor.extract_slice %o[%i] [1] [1] : tensor<16xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i] [1] [1] : tensor<1xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// -----

// A loop on buffers is upstream's.
//
// CHECK-LABEL: func.func @buffers
func.func @buffers(%a: memref<4xf32>) {
  return
}

// -----

func.func @dynamic(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @below {{expected constant bounds}}
  %r = scf.forall (%i) in (%n) shared_outs(%o = %a) -> (tensor<4xf32>) {
    %d = tensor.extract_slice %o[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i] [1] [1] : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %r : tensor<4xf32>
}
