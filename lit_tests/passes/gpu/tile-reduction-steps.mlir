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

// -----

// A convolution advances over channels: 16384 bytes hold the border around 40 of 80.
// CHECK-LABEL: func.func @border(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<1x80x8x8xf32>, %[[W:[a-z0-9]+]]: tensor<4x80x3x3xf32>
// CHECK:           scf.for %[[C:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(
// CHECK-DAG:         %[[IMAGE:.+]] = tensor.extract_slice %{{.+}}[0, %[[C]], 0, 0] [1, 40, 8, 8]
// CHECK-DAG:         %[[EMPTY:.+]] = tensor.empty() : tensor<1x40x10x10xf32>
// CHECK:             %[[ZERO:.+]] = linalg.fill ins(%{{.+}}) outs(%[[EMPTY]]
// CHECK:             %[[WHOLE:.+]] = tensor.insert_slice %[[IMAGE]] into %[[ZERO]][0, 0, 1, 1] [1, 40, 8, 8]
// CHECK:             %[[WINDOW:.+]] = tensor.extract_slice %[[WHOLE]][0, 0, %{{.+}}, 0] [1, 40, 9, 10]
// CHECK:             linalg.conv_2d_nchw_fchw {{.+}} ins(%[[WINDOW]], %{{.+}} : tensor<1x40x9x10xf32>, tensor<4x40x3x3xf32>)
func.func @border(%x: tensor<1x80x8x8xf32>, %w: tensor<4x80x3x3xf32>, %out: tensor<1x4x7x8xf32>, %row: index) -> tensor<1x4x7x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x4x7x8xf32>) {
    %image = tensor.extract_slice %x[0, 0, 0, 0] [1, 80, 8, 8] [1, 1, 1, 1] : tensor<1x80x8x8xf32> to tensor<1x80x8x8xf32>
    %empty = tensor.empty() : tensor<1x80x10x10xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x80x10x10xf32>) -> tensor<1x80x10x10xf32>
    %bordered = tensor.insert_slice %image into %blank[0, 0, 1, 1] [1, 80, 8, 8] [1, 1, 1, 1] : tensor<1x80x8x8xf32> into tensor<1x80x10x10xf32>
    %window = tensor.extract_slice %bordered[0, 0, %row, 0] [1, 80, 9, 10] [1, 1, 1, 1] : tensor<1x80x10x10xf32> to tensor<1x80x9x10xf32>
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%window, %w : tensor<1x80x9x10xf32>, tensor<4x80x3x3xf32>) outs(%f : tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 4, 7, 8] [1, 1, 1, 1] : tensor<1x4x7x8xf32> into tensor<1x4x7x8xf32>
    }
  }
  return %r : tensor<1x4x7x8xf32>
}

// -----

// A tile of all pixels reads the border whole.
// CHECK-LABEL: func.func @whole(
// CHECK:           scf.for %[[C:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(
// CHECK-DAG:         %[[IMAGE:.+]] = tensor.extract_slice %{{.+}}[0, %[[C]], 0, 0] [1, 40, 8, 8]
// CHECK-DAG:         %[[EMPTY:.+]] = tensor.empty() : tensor<1x40x10x10xf32>
// CHECK:             %[[WHOLE:.+]] = tensor.insert_slice %[[IMAGE]] into %{{.+}}[0, 0, 1, 1] [1, 40, 8, 8]
// CHECK:             linalg.conv_2d_nchw_fchw {{.+}} ins(%[[WHOLE]], %{{.+}} : tensor<1x40x10x10xf32>, tensor<4x40x3x3xf32>)
func.func @whole(%x: tensor<1x80x8x8xf32>, %w: tensor<4x80x3x3xf32>, %out: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x4x8x8xf32>) {
    %image = tensor.extract_slice %x[0, 0, 0, 0] [1, 80, 8, 8] [1, 1, 1, 1] : tensor<1x80x8x8xf32> to tensor<1x80x8x8xf32>
    %empty = tensor.empty() : tensor<1x80x10x10xf32>
    %blank = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x80x10x10xf32>) -> tensor<1x80x10x10xf32>
    %bordered = tensor.insert_slice %image into %blank[0, 0, 1, 1] [1, 80, 8, 8] [1, 1, 1, 1] : tensor<1x80x8x8xf32> into tensor<1x80x10x10xf32>
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%bordered, %w : tensor<1x80x10x10xf32>, tensor<4x80x3x3xf32>) outs(%f : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 4, 8, 8] [1, 1, 1, 1] : tensor<1x4x8x8xf32> into tensor<1x4x8x8xf32>
    }
  }
  return %r : tensor<1x4x8x8xf32>
}
