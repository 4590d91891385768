// RUN: magweld-opt --split-input-file --tile-reduction-steps="step=8" %s | filecheck %s

// CHECK-LABEL: func.func @contraction(
// CHECK-SAME:      %[[A:[a-z0-9]+]]: tensor<16x32xf32>, %[[B:[a-z0-9]+]]: tensor<32x16xf32>
// CHECK:           %[[ZERO:.+]] = linalg.fill
// CHECK-DAG:       %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:       %[[C32:.+]] = arith.constant 32 : index
// CHECK-DAG:       %[[C8:.+]] = arith.constant 8 : index
// CHECK:           scf.for %[[K:.+]] = %[[C0]] to %[[C32]] step %[[C8]] iter_args(%[[ACC:.+]] = %[[ZERO]])
// CHECK-DAG:         tensor.extract_slice %[[A]][0, %[[K]]] [16, 8]
// CHECK-DAG:         tensor.extract_slice %[[B]][%[[K]], 0] [8, 16]
// CHECK:             linalg.matmul ins(%{{.+}} : tensor<16x8xf32>, tensor<8x16xf32>)
// CHECK-NOT:       magweld.reduction_step
func.func @contraction(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %out: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<16x16xf32>) {
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// A longer step of the schedule goes before the option, a shorter one does not; the
// largest divisor within is taken.
// CHECK-LABEL: func.func @scheduled(
// CHECK:         %[[C9:.+]] = arith.constant 9 : index
// CHECK:         scf.for %{{.+}} = %{{.+}} to %{{.+}} step %[[C9]]
// CHECK:           linalg.matmul ins(%{{.+}} : tensor<4x9xf32>, tensor<9x4xf32>)
func.func @scheduled(%a: tensor<4x18xf32>, %b: tensor<18x4xf32>, %out: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {tile_graph.kernel, tile_graph.reduction_step = 10 : i64} {
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<4x4xf32>) {
    %y = linalg.matmul ins(%a, %b : tensor<4x18xf32>, tensor<18x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x4xf32>
    }
  }
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @scheduled_shorter(
// CHECK:           linalg.matmul ins(%{{.+}} : tensor<4x6xf32>, tensor<6x4xf32>)
func.func @scheduled_shorter(%a: tensor<4x18xf32>, %b: tensor<18x4xf32>, %out: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {tile_graph.kernel, tile_graph.reduction_step = 1 : i64} {
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<4x4xf32>) {
    %y = linalg.matmul ins(%a, %b : tensor<4x18xf32>, tensor<18x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x4xf32>
    }
  }
  return %r : tensor<4x4xf32>
}

// -----

// One step is no loop, and other reductions than contractions are left alone.
// CHECK-LABEL: func.func @short(
// CHECK-NOT:     scf.for %
func.func @short(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %x: tensor<4x64xf32>, %out: tensor<4x4xf32>, %sums: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) attributes {tile_graph.kernel} {
  %r:2 = scf.forall (%n) in (1) shared_outs(%o = %out, %p = %sums) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %y = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
    %z = linalg.reduce {arith.addf} ins(%x : tensor<4x64xf32>) outs(%p : tensor<4xf32>) dimensions = [1]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x4xf32>
      tensor.parallel_insert_slice %z into %p[0] [4] [1] : tensor<4xf32> into tensor<4xf32>
    }
  }
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<4xf32>
}
