// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(multiply-window-points{family=mma capacity=49152})" %s | filecheck %s
// RUN: magweld-opt --split-input-file --multiply-window-points %s | filecheck %s --check-prefix=NONE
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(multiply-window-points{family=mma capacity=8192})" %s | filecheck %s --check-prefix=NONE

// Two steps of 16 channels. 4 rows of 10 pixels are 40 columns, of 64; the image has
// three rows more for what is behind their end.
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0) -> (d0 * 16)>
// CHECK-DAG: #[[PIXEL:.+]] = affine_map<(d0) -> ({{.*}}d0 floordiv 3{{.*}})>
// CHECK-DAG: #[[LEFT:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RIGHT:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[SUM:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @windows(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<1x32x6x10xf16>, %[[W:[a-z0-9]+]]: tensor<16x32x3x3xf16>
// CHECK:         %[[SUMS:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<16x64xf32>
// CHECK:         %[[ZEROS:.+]] = linalg.fill ins(%{{.+}}) outs(%[[SUMS]]
// CHECK:         %[[ALL:.+]] = scf.for %[[C:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%{{.+}} = %[[ZEROS]])
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[C]], 0, 0] [1, 16, 6, 10]
// CHECK:           %[[TURNED:.+]] = linalg.generic {{.+}} outs(%{{.+}} : tensor<1x6x10x16xf16>)
// CHECK:           %[[WHOLE:.+]] = tensor.insert_slice %[[TURNED]] into %{{.+}}[0, 0, 0, 0] [1, 6, 10, 16]
// CHECK:           %[[PIXELS:.+]] = tensor.collapse_shape %[[WHOLE]] {{\[}}[0, 1, 2], [3]] : {{.+}} into tensor<90x16xf16>
// CHECK:           tensor.extract_slice %[[W]][0, %[[C]], 0, 0] [16, 16, 3, 3]
// CHECK:           linalg.copy {{.*}}ins(%{{.+}} : tensor<16x144xf16>)
// CHECK:           %[[POINTS:.+]] = tensor.collapse_shape %{{.+}} {{\[}}[0, 1], [2]] : {{.+}} into tensor<144x16xf16>
// CHECK:           scf.for %[[P:.+]] = %{{.+}} to %{{.+}} step
// CHECK:             %[[F:.+]] = affine.apply #[[ROW]](%[[P]])
// CHECK:             %[[A:.+]] = tensor.extract_slice %[[POINTS]][%[[F]], 0] [16, 16]
// CHECK:             %[[Q:.+]] = affine.apply #[[PIXEL]](%[[P]])
// CHECK:             %[[B:.+]] = tensor.extract_slice %[[PIXELS]][%[[Q]], 0] [64, 16]
// CHECK:             linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #[[SUM]]], {{.+}} ins(%[[A]], %[[B]] : tensor<16x16xf16>, tensor<64x16xf16>) outs(%{{.+}} : tensor<16x64xf32>)
// CHECK:         %[[THROUGH:.+]] = linalg.copy {{.*}}ins(%[[ALL]]
// CHECK:         %[[ROWS:.+]] = tensor.extract_slice %[[THROUGH]][0, 0] [16, 40]
// CHECK:         %[[SPLIT:.+]] = tensor.expand_shape %[[ROWS]] {{\[}}[0, 1], [2, 3]] output_shape [1, 16, 4, 10]
// CHECK:         tensor.extract_slice %[[SPLIT]][0, 0, 0, 0] [1, 16, 4, 8]
// CHECK-NOT:     linalg.conv_2d_nchw_fchw

// Without such instructions, or room for a step, threads compute it.
// NONE-LABEL: func.func @windows(
// NONE-NOT:     scf.for %
// NONE:         linalg.conv_2d_nchw_fchw
func.func @windows(%x: tensor<1x32x6x10xf16>, %w: tensor<16x32x3x3xf16>, %out: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x16x4x8xf32>) {
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x32x6x10xf16>, tensor<16x32x3x3xf16>) outs(%f : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 16, 4, 8] [1, 1, 1, 1] : tensor<1x16x4x8xf32> into tensor<1x16x4x8xf32>
    }
  }
  return %r : tensor<1x16x4x8xf32>
}

// -----

// With a border, which is made around the channels of a step. Every second row and
// column of the image is another one.
// CHECK-LABEL: func.func @strided(
// CHECK:         scf.for %[[C:.+]] = %{{.+}} to
// CHECK:           %[[STEP:.+]] = tensor.extract_slice %{{.+}}[0, %[[C]], 0, 0] [1, 16, 8, 8]
// CHECK:           %[[FILLED:.+]] = linalg.fill {{.+}} outs(%{{.+}} : tensor<1x16x10x10xf16>)
// CHECK:           tensor.insert_slice %{{.+}} into %[[FILLED]][0, 0, 1, 1] [1, 16, 8, 8]
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, 0, 0] [1, 16, 5, 5] [1, 1, 2, 2]
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, 0, 1] [1, 16, 5, 4] [1, 1, 2, 2]
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, 1, 0] [1, 16, 4, 5] [1, 1, 2, 2]
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, 1, 1] [1, 16, 4, 4] [1, 1, 2, 2]
func.func @strided(%x: tensor<1x32x8x8xf16>, %w: tensor<16x32x3x3xf16>, %out: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %h = arith.constant 0.0 : f16
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x16x4x4xf32>) {
    %empty = tensor.empty() : tensor<1x32x10x10xf16>
    %blank = linalg.fill ins(%h : f16) outs(%empty : tensor<1x32x10x10xf16>) -> tensor<1x32x10x10xf16>
    %bordered = tensor.insert_slice %x into %blank[0, 0, 1, 1] [1, 32, 8, 8] [1, 1, 1, 1] : tensor<1x32x8x8xf16> into tensor<1x32x10x10xf16>
    %window = tensor.extract_slice %bordered[0, 0, 0, 0] [1, 32, 9, 9] [1, 1, 1, 1] : tensor<1x32x10x10xf16> to tensor<1x32x9x9xf16>
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%window, %w : tensor<1x32x9x9xf16>, tensor<16x32x3x3xf16>) outs(%f : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 16, 4, 4] [1, 1, 1, 1] : tensor<1x16x4x4xf32> into tensor<1x16x4x4xf32>
    }
  }
  return %r : tensor<1x16x4x4xf32>
}

// -----

// Half a step of channels, f32, and sums that do not begin at zero.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     scf.for %
// CHECK-COUNT-3: linalg.conv_2d_nchw_fchw
func.func @others(%x: tensor<1x24x6x10xf16>, %w: tensor<16x24x3x3xf16>, %xf: tensor<1x16x6x10xf32>, %wf: tensor<16x16x3x3xf32>, %xs: tensor<1x16x6x10xf16>, %ws: tensor<16x16x3x3xf16>, %start: tensor<1x16x4x8xf32>, %out: tensor<1x48x4x8xf32>) -> tensor<1x48x4x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x48x4x8xf32>) {
    %e = tensor.empty() : tensor<1x16x4x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    %a = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x24x6x10xf16>, tensor<16x24x3x3xf16>) outs(%f : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    %b = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xf, %wf : tensor<1x16x6x10xf32>, tensor<16x16x3x3xf32>) outs(%f : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xs, %ws : tensor<1x16x6x10xf16>, tensor<16x16x3x3xf16>) outs(%start : tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %a into %o[0, 0, 0, 0] [1, 16, 4, 8] [1, 1, 1, 1] : tensor<1x16x4x8xf32> into tensor<1x48x4x8xf32>
      tensor.parallel_insert_slice %b into %o[0, 16, 0, 0] [1, 16, 4, 8] [1, 1, 1, 1] : tensor<1x16x4x8xf32> into tensor<1x48x4x8xf32>
      tensor.parallel_insert_slice %c into %o[0, 32, 0, 0] [1, 16, 4, 8] [1, 1, 1, 1] : tensor<1x16x4x8xf32> into tensor<1x48x4x8xf32>
    }
  }
  return %r : tensor<1x48x4x8xf32>
}
