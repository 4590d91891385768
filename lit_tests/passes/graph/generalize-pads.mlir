// RUN: magweld-opt --generalize-pads %s | filecheck %s
// RUN: magweld-opt --pass-pipeline='builtin.module(generalize-pads{keep-copied=true})' %s | filecheck %s --check-prefix=COPIED

// Each element of the result reads the nearest one of the source, and takes it where that
// is its own. Dimensions without a border are read as they are.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[X:.+]]: tensor<3x5xf32>)
// CHECK-NOT:     tensor.pad
// CHECK:         %[[E:.+]] = tensor.empty() : tensor<3x8xf32>
// CHECK:         linalg.generic {{{.+}} iterator_types = ["parallel", "parallel"]} outs(%[[E]] : tensor<3x8xf32>)
// CHECK-DAG:       %[[FILL:.+]] = arith.constant 2.5{{.+}} : f32
// CHECK-DAG:       %[[I:.+]] = linalg.index 0 : index
// CHECK-DAG:       %[[J:.+]] = linalg.index 1 : index
// CHECK-DAG:       %[[LOW:.+]] = arith.constant 2 : index
// CHECK:           %[[HERE:.+]] = arith.subi %[[J]], %[[LOW]] : index
// CHECK:           %[[FIRST:.+]] = arith.constant 0 : index
// CHECK:           %[[MORE:.+]] = arith.maxsi %[[HERE]], %[[FIRST]] : index
// CHECK:           %[[LAST:.+]] = arith.constant 4 : index
// CHECK:           %[[AT:.+]] = arith.minsi %[[MORE]], %[[LAST]] : index
// CHECK:           %[[SAME:.+]] = arith.cmpi eq, %[[AT]], %[[HERE]] : index
// CHECK:           %[[V:.+]] = tensor.extract %[[X]][%[[I]], %[[AT]]] : tensor<3x5xf32>
// CHECK:           %[[S:.+]] = arith.select %[[SAME]], %[[V]], %[[FILL]] : f32
// CHECK:           linalg.yield %[[S]] : f32
func.func @rows(%x: tensor<3x5xf32>) -> tensor<3x8xf32> {
  %fill = arith.constant 2.5 : f32
  %p = tensor.pad %x low[0, 2] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %fill : f32
  } : tensor<3x5xf32> to tensor<3x8xf32>
  return %p : tensor<3x8xf32>
}

// What only windows read is part of them.
// CHECK-LABEL: func.func @windows(
// CHECK:         %[[P:.+]] = tensor.pad
// CHECK:         linalg.conv_2d_nchw_fchw {{.+}} ins(%[[P]],
func.func @windows(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x2x4x4xf32> to tensor<1x2x6x6xf32>
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>,
                                 strides = dense<1> : vector<2xi64>}
      ins(%p, %w : tensor<1x2x6x6xf32>, tensor<3x2x3x3xf32>)
      outs(%init : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// So is what is copied window by window, where this is wanted; another copy is none.
// CHECK-LABEL: func.func @side_by_side(
// CHECK-NOT:     tensor.pad
// COPIED-LABEL: func.func @side_by_side(
// COPIED:         %[[P:.+]] = tensor.pad
// COPIED:         linalg.generic {{.+}} ins(%[[P]] : tensor<9xf32>) outs(%{{.+}} : tensor<3x4xf32>)
func.func @side_by_side(%x: tensor<7xf32>) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%a: index):
    tensor.yield %zero : f32
  } : tensor<7xf32> to tensor<9xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, x) -> (2 * x + i)>, affine_map<(i, x) -> (i, x)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<9xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// COPIED-LABEL: func.func @copy(
// COPIED-NOT:     tensor.pad
func.func @copy(%x: tensor<7xf32>) -> tensor<9xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%a: index):
    tensor.yield %zero : f32
  } : tensor<7xf32> to tensor<9xf32>
  %e = tensor.empty() : tensor<9xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(x) -> (x)>, affine_map<(x) -> (x)>], iterator_types = ["parallel"]} ins(%p : tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// A border that is no constant is left alone.
// CHECK-LABEL: func.func @of_an_argument(
// COPIED-LABEL: func.func @of_an_argument(
// CHECK:         tensor.pad
func.func @of_an_argument(%x: tensor<4xf32>, %fill: f32) -> tensor<6xf32> {
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %fill : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %p : tensor<6xf32>
}
