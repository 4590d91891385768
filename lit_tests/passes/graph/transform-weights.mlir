// RUN: magweld-opt --transform-weights=in-tiles=0 %s | filecheck %s
// RUN: magweld-opt --transform-weights %s | filecheck %s --check-prefix=TILES

// The weights of 32 rows: two blocks of sixteen rows, which lie side by side, with room
// for an odd number of channels.
//
// CHECK-DAG:   #[[ROWS:.+]] = affine_map<(d0) -> (d0 * 16)>
// CHECK-DAG:   #[[SIDE:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1, d2)>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      %[[X:.+]]: tensor<1x8x10x10xf32>, %[[W:.+]]: tensor<32x8x3x3xf32>)
// CHECK:         %[[DEST:.+]] = tensor.empty() : tensor<1x32x8x8xf32>
// CHECK:         %[[EMPTY:.+]] = tensor.empty() : tensor<2x16x9x16xf32>
// CHECK:         %[[U:.+]] = call @weights_0(%[[W]], %[[EMPTY]]) {tile_graph.operators = ["winograd_weights"]}
// CHECK:         call @kernel_0(%[[X]], %[[W]], %[[U]], %[[DEST]]) {tile_graph.operators = ["conv"]}
func.func @main(%x: tensor<1x8x10x10xf32>, %w: tensor<32x8x3x3xf32>) -> tensor<1x32x8x8xf32> {
  %empty = tensor.empty() : tensor<1x32x8x8xf32>
  %0 = call @kernel_0(%x, %w, %empty) {tile_graph.operators = ["conv"]} : (tensor<1x8x10x10xf32>, tensor<32x8x3x3xf32>, tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
}

// The destination stays the last argument.
// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME:      %{{.+}}: tensor<1x8x10x10xf32>, %{{.+}}: tensor<32x8x3x3xf32>, %{{.+}}: tensor<2x16x9x16xf32>, %[[OUT:.+]]: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
// CHECK:         linalg.fill ins(%{{.+}} : f32) outs(%[[OUT]] :
// CHECK:         linalg.conv_2d_nchw_fchw {{{.*}}magweld.winograd = 2 : i64, magweld.winograd_weights = 2 : i64
func.func private @kernel_0(%x: tensor<1x8x10x10xf32>, %w: tensor<32x8x3x3xf32>, %out: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xf32>, tensor<32x8x3x3xf32>) outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %y : tensor<1x32x8x8xf32>
}

// Weights that the kernel makes itself, and parts of blocks of rows: no mark is left.
// CHECK-LABEL: func.func private @kernel_1(
// CHECK-SAME:      %{{.+}}: tensor<1x8x10x10xf32>, %{{.+}}: tensor<8x8x3x3xf32>, %{{.+}}: tensor<1x8x8x8xf32>)
// CHECK-NOT:     magweld.winograd
func.func private @kernel_1(%x: tensor<1x8x10x10xf32>, %w: tensor<8x8x3x3xf32>, %out: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xf32>, tensor<8x8x3x3xf32>) outs(%init : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %y : tensor<1x8x8x8xf32>
}

// Two convolutions with the same weights, as tiles of two shapes have them.
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[U:.+]] = call @weights_0(
// CHECK-NOT:     @weights
// CHECK:         call @kernel_2(%{{.+}}, %{{.+}}, %[[U]], %{{.+}}, %{{.+}})
func.func @twice(%x: tensor<1x8x10x10xf32>, %w: tensor<32x8x3x3xf32>) -> (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>) {
  %empty = tensor.empty() : tensor<1x32x8x8xf32>
  %0:2 = call @kernel_2(%x, %w, %empty, %empty) {tile_graph.operators = ["conv"]} : (tensor<1x8x10x10xf32>, tensor<32x8x3x3xf32>, tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>) -> (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>)
  return %0#0, %0#1 : tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>
}

// CHECK-LABEL: func.func private @kernel_2(
// CHECK-COUNT-2: magweld.winograd_weights = 2 : i64
func.func private @kernel_2(%x: tensor<1x8x10x10xf32>, %w: tensor<32x8x3x3xf32>, %a: tensor<1x32x8x8xf32>, %b: tensor<1x32x8x8xf32>) -> (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>) attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%a : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xf32>, tensor<32x8x3x3xf32>) outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %other = linalg.fill ins(%zero : f32) outs(%b : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %z = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xf32>, tensor<32x8x3x3xf32>) outs(%other : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %y, %z : tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>
}

// CHECK-LABEL: func.func private @weights_0(
// CHECK-SAME:      %[[FROM:.+]]: tensor<32x8x3x3xf32>, %[[TO:.+]]: tensor<2x16x9x16xf32>) -> tensor<2x16x9x16xf32> attributes {tile_graph.kernel}
// CHECK:         scf.forall (%[[B:.+]], %[[C:.+]]) = (0, 0) to (2, 8) step (1, 8)
// CHECK:           %[[F:.+]] = affine.apply #[[ROWS]](%[[B]])
// CHECK:           tensor.extract_slice %[[FROM]][%[[F]], %[[C]], 0, 0] [16, 8, 3, 3]
// CHECK:           linalg.generic {indexing_maps = [#[[SIDE]],
// CHECK:           %[[PART:.+]] = tensor.extract_slice %{{.+}}[%[[B]], 0, %[[C]], 0] [1, 16, 8, 16] [1, 1, 1, 1] : tensor<2x16x9x16xf32> to tensor<16x8x16xf32>
// CHECK-COUNT-16:  tensor.extract_slice %[[PART]]{{.+}} [1, 8, 16] [1, 1, 1] : tensor<16x8x16xf32> to tensor<8x16xf32>
// CHECK:           linalg.generic
// CHECK-COUNT-16:  tensor.insert_slice
// CHECK:           scf.forall.in_parallel
// CHECK-NEXT:        tensor.parallel_insert_slice %{{.+}}[%[[B]], 0, %[[C]], 0] [1, 16, 8, 16]
// CHECK-NEXT:      }

// Seven rows of tiles in loops: more transforms than one kernel is worth. One tile, or
// two convolutions with the same weights, transform them in place.
//
// TILES-LABEL: func.func private @kernel_0(
// TILES-NOT:     magweld.winograd_weights
// TILES:         linalg.conv_2d_nchw_fchw {{{.*}}magweld.winograd = 2 : i64, strides
// TILES-LABEL: func.func private @kernel_2(
// TILES-COUNT-2: linalg.conv_2d_nchw_fchw {{{.*}}magweld.winograd = 2 : i64, strides
// TILES-LABEL: func.func @rows(
// TILES:         call @weights_0(
// TILES-LABEL: func.func private @kernel_3(
// TILES:         magweld.winograd_weights = 2 : i64
func.func @rows(%x: tensor<1x8x16x10xf32>, %w: tensor<32x8x3x3xf32>) -> tensor<1x32x14x8xf32> {
  %empty = tensor.empty() : tensor<1x32x14x8xf32>
  %0 = call @kernel_3(%x, %w, %empty) {tile_graph.operators = ["conv"]} : (tensor<1x8x16x10xf32>, tensor<32x8x3x3xf32>, tensor<1x32x14x8xf32>) -> tensor<1x32x14x8xf32>
  return %0 : tensor<1x32x14x8xf32>
}

func.func private @kernel_3(%x: tensor<1x8x16x10xf32>, %w: tensor<32x8x3x3xf32>, %out: tensor<1x32x14x8xf32>) -> tensor<1x32x14x8xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %0 = scf.forall (%f, %h) = (0, 0) to (32, 14) step (16, 2) shared_outs(%y = %out) -> (tensor<1x32x14x8xf32>) {
    %image = tensor.extract_slice %x[0, 0, %h, 0] [1, 8, 4, 10] [1, 1, 1, 1] : tensor<1x8x16x10xf32> to tensor<1x8x4x10xf32>
    %rows = tensor.extract_slice %w[%f, 0, 0, 0] [16, 8, 3, 3] [1, 1, 1, 1] : tensor<32x8x3x3xf32> to tensor<16x8x3x3xf32>
    %part = tensor.extract_slice %y[0, %f, %h, 0] [1, 16, 2, 8] [1, 1, 1, 1] : tensor<1x32x14x8xf32> to tensor<1x16x2x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%part : tensor<1x16x2x8xf32>) -> tensor<1x16x2x8xf32>
    %made = linalg.conv_2d_nchw_fchw {magweld.winograd = 2 : i64, dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%image, %rows : tensor<1x8x4x10xf32>, tensor<16x8x3x3xf32>) outs(%init : tensor<1x16x2x8xf32>) -> tensor<1x16x2x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %made into %y[0, %f, %h, 0] [1, 16, 2, 8] [1, 1, 1, 1] : tensor<1x16x2x8xf32> into tensor<1x32x14x8xf32>
    }
  }
  return %0 : tensor<1x32x14x8xf32>
}
