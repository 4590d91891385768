// RUN: magweld-opt --fold-slices --split-input-file %s | filecheck %s

// A slice of slices that are joined again is a slice of the tensor.
//
// CHECK-LABEL: func.func @slice_of_neighbours(
// CHECK-SAME:      %[[X:.+]]: tensor<4x24xf32>)
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[X]][0, 4] [4, 8] [1, 1]
// CHECK-NEXT:    return %[[S]]
func.func @slice_of_neighbours(%x: tensor<4x24xf32>) -> tensor<4x8xf32> {
  %a = tensor.extract_slice %x[0, 0] [4, 8] [1, 1]
      : tensor<4x24xf32> to tensor<4x8xf32>
  %b = tensor.extract_slice %x[0, 8] [4, 16] [1, 1]
      : tensor<4x24xf32> to tensor<4x16xf32>
  %c = tensor.concat dim(1) %a, %b
      : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  %s = tensor.extract_slice %c[0, 4] [4, 8] [1, 1]
      : tensor<4x24xf32> to tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

// All parts in order are the tensor, joined in two steps as well.
//
// CHECK-LABEL: func.func @all_parts(
// CHECK-SAME:      %[[X:.+]]: tensor<6x5xi64>)
// CHECK-NEXT:    return %[[X]]
func.func @all_parts(%x: tensor<6x5xi64>) -> tensor<6x5xi64> {
  %a = tensor.extract_slice %x[0, 0] [1, 5] [1, 1] : tensor<6x5xi64> to tensor<1x5xi64>
  %b = tensor.extract_slice %x[1, 0] [2, 5] [1, 1] : tensor<6x5xi64> to tensor<2x5xi64>
  %c = tensor.extract_slice %x[3, 0] [3, 5] [1, 1] : tensor<6x5xi64> to tensor<3x5xi64>
  %ab = tensor.concat dim(0) %a, %b
      : (tensor<1x5xi64>, tensor<2x5xi64>) -> tensor<3x5xi64>
  %abc = tensor.concat dim(0) %ab, %c
      : (tensor<3x5xi64>, tensor<3x5xi64>) -> tensor<6x5xi64>
  return %abc : tensor<6x5xi64>
}

// -----

// In another order, with a gap, or beside each other in another dimension, slices are no
// neighbours.
//
// CHECK-LABEL: func.func @no_neighbours(
// CHECK-COUNT-3: tensor.concat
func.func @no_neighbours(%x: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>) {
  %l = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %r = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %turned = tensor.concat dim(1) %r, %l
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %a = tensor.extract_slice %x[0, 0] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %b = tensor.extract_slice %x[0, 3] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %gap = tensor.concat dim(1) %a, %b
      : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %c = tensor.extract_slice %x[0, 0] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  %d = tensor.extract_slice %x[2, 0] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  %side = tensor.concat dim(1) %c, %d
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return %turned, %gap, %side : tensor<4x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>
}

// -----

// What an unbind takes apart and a stack joins is one slice.
//
// CHECK-LABEL: func.func @stack_of_unbind(
// CHECK-SAME:      %[[X:.+]]: tensor<6x8x4xf32>)
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[X]][0, 1, 0] [6, 2, 4] [1, 1, 1]
// CHECK-NEXT:    %[[C:.+]] = tensor.collapse_shape %[[S]] {{\[}}[0], [1, 2]]
// CHECK-NEXT:    return %[[C]]
func.func @stack_of_unbind(%x: tensor<6x8x4xf32>) -> tensor<6x8xf32> {
  %a = tensor.extract_slice %x[0, 1, 0] [6, 1, 4] [1, 1, 1]
      : tensor<6x8x4xf32> to tensor<6x4xf32>
  %b = tensor.extract_slice %x[0, 2, 0] [6, 1, 4] [1, 1, 1]
      : tensor<6x8x4xf32> to tensor<6x4xf32>
  %c = tensor.concat dim(1) %a, %b
      : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  return %c : tensor<6x8xf32>
}

// -----

// Rows of two planes, one behind the other, are not the planes one behind the other.
//
// CHECK-LABEL: func.func @rows_of_planes(
// CHECK:         tensor.concat dim(1)
func.func @rows_of_planes(%x: tensor<3x6x4xf32>) -> tensor<6x8xf32> {
  %a = tensor.extract_slice %x[0, 0, 0] [1, 6, 4] [1, 1, 1]
      : tensor<3x6x4xf32> to tensor<6x4xf32>
  %b = tensor.extract_slice %x[1, 0, 0] [1, 6, 4] [1, 1, 1]
      : tensor<3x6x4xf32> to tensor<6x4xf32>
  %c = tensor.concat dim(1) %a, %b
      : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  return %c : tensor<6x8xf32>
}

// -----

// A slice takes its parts of the operands that it touches.
//
// CHECK-LABEL: func.func @slice_across(
// CHECK-SAME:      %[[A:.+]]: tensor<4x3xf32>, %[[B:.+]]: tensor<4x3xf32>, %[[C:.+]]: tensor<4x3xf32>)
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[A]][1, 2] [2, 1] [1, 1]
// CHECK-NEXT:    %[[T:.+]] = tensor.extract_slice %[[B]][1, 0] [2, 2] [1, 1]
// CHECK-NEXT:    %[[R:.+]] = tensor.concat dim(1) %[[S]], %[[T]]
// CHECK-NEXT:    return %[[R]]
func.func @slice_across(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>, %c: tensor<4x3xf32>)
    -> tensor<2x3xf32> {
  %j = tensor.concat dim(1) %a, %b, %c
      : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x9xf32>
  %s = tensor.extract_slice %j[1, 2] [2, 3] [1, 1] : tensor<4x9xf32> to tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}

// -----

// A concatenation that is there anyway is read in place.
//
// CHECK-LABEL: func.func @slice_across_of_result(
// CHECK:         %[[J:.+]] = tensor.concat dim(1)
// CHECK-NEXT:    tensor.extract_slice %[[J]][0, 2] [4, 3] [1, 1]
func.func @slice_across_of_result(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>)
    -> (tensor<4x6xf32>, tensor<4x3xf32>) {
  %j = tensor.concat dim(1) %a, %b
      : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  %s = tensor.extract_slice %j[0, 2] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  return %j, %s : tensor<4x6xf32>, tensor<4x3xf32>
}

// -----

// Every second element is a slice of the dimension split in two; not so where the
// dimension is no multiple of the step.
//
// CHECK-LABEL: func.func @interleaved(
// CHECK-SAME:      %[[X:.+]]: tensor<4x24xf32>, %[[Y:.+]]: tensor<4x25xf32>)
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2]] output_shape [4, 12, 2]
// CHECK:         tensor.extract_slice %[[E]][0, 0, 1] [4, 12, 1] [1, 1, 1] {{.*}} to tensor<4x12x1xf32>
// CHECK:         tensor.extract_slice %[[Y]][0, 1] [4, 12] [1, 2]
func.func @interleaved(%x: tensor<4x24xf32>, %y: tensor<4x25xf32>)
    -> (tensor<4x12x1xf32>, tensor<4x12xf32>) {
  %a = tensor.extract_slice %x[0, 1] [4, 12] [1, 2]
      : tensor<4x24xf32> to tensor<4x12xf32>
  %c = tensor.expand_shape %a [[0], [1, 2]] output_shape [4, 12, 1]
      : tensor<4x12xf32> into tensor<4x12x1xf32>
  %b = tensor.extract_slice %y[0, 1] [4, 12] [1, 2]
      : tensor<4x25xf32> to tensor<4x12xf32>
  return %c, %b : tensor<4x12x1xf32>, tensor<4x12xf32>
}

// -----

// An insertion along one dimension is a concatenation of what is around it.
//
// CHECK-LABEL: func.func @insert(
// CHECK-SAME:      %[[X:.+]]: tensor<6x8x4xf32>, %[[V:.+]]: tensor<6x4xf32>)
// CHECK-DAG:     %[[E:.+]] = tensor.expand_shape %[[V]] {{\[}}[0, 1], [2]] output_shape [6, 1, 4]
// CHECK-DAG:     %[[L:.+]] = tensor.extract_slice %[[X]][0, 0, 0] [6, 3, 4] [1, 1, 1]
// CHECK-DAG:     %[[H:.+]] = tensor.extract_slice %[[X]][0, 4, 0] [6, 4, 4] [1, 1, 1]
// CHECK:         tensor.concat dim(1) %[[L]], %[[E]], %[[H]]
func.func @insert(%x: tensor<6x8x4xf32>, %v: tensor<6x4xf32>) -> tensor<6x8x4xf32> {
  %i = tensor.insert_slice %v into %x[0, 3, 0] [6, 1, 4] [1, 1, 1]
      : tensor<6x4xf32> into tensor<6x8x4xf32>
  return %i : tensor<6x8x4xf32>
}

// -----

// One that is smaller in two dimensions, and one with a step, are left alone.
//
// CHECK-LABEL: func.func @insert_corner(
// CHECK-COUNT-2: tensor.insert_slice
func.func @insert_corner(%x: tensor<6x8xf32>, %v: tensor<2x2xf32>, %w: tensor<6x4xf32>)
    -> tensor<6x8xf32> {
  %i = tensor.insert_slice %v into %x[0, 3] [2, 2] [1, 1]
      : tensor<2x2xf32> into tensor<6x8xf32>
  %j = tensor.insert_slice %w into %i[0, 0] [6, 4] [1, 2]
      : tensor<6x4xf32> into tensor<6x8xf32>
  return %j : tensor<6x8xf32>
}

// -----

// A slice of a slice is one of the tensor; not so where the outer one has a step.
//
// CHECK-LABEL: func.func @slice_of_slice(
// CHECK-SAME:      %[[X:.+]]: tensor<6x24xf32>, %[[Y:.+]]: tensor<6x25xf32>)
// CHECK-NEXT:    %[[B:.+]] = tensor.extract_slice %[[X]][3, 12] [2, 4] [1, 1]
// CHECK-NEXT:    %[[C:.+]] = tensor.extract_slice %[[Y]][0, 0] [6, 12] [1, 2]
// CHECK-NEXT:    %[[D:.+]] = tensor.extract_slice %[[C]][0, 4] [6, 4] [1, 1]
// CHECK-NEXT:    return %[[B]], %[[D]]
func.func @slice_of_slice(%x: tensor<6x24xf32>, %y: tensor<6x25xf32>)
    -> (tensor<2x4xf32>, tensor<6x4xf32>) {
  %a = tensor.extract_slice %x[1, 8] [4, 12] [1, 1]
      : tensor<6x24xf32> to tensor<4x12xf32>
  %b = tensor.extract_slice %a[2, 4] [2, 4] [1, 1] : tensor<4x12xf32> to tensor<2x4xf32>
  %c = tensor.extract_slice %y[0, 0] [6, 12] [1, 2]
      : tensor<6x25xf32> to tensor<6x12xf32>
  %d = tensor.extract_slice %c[0, 4] [6, 4] [1, 1] : tensor<6x12xf32> to tensor<6x4xf32>
  return %b, %d : tensor<2x4xf32>, tensor<6x4xf32>
}

// -----

// A concatenation that others read, or along another dimension, is not taken apart.
//
// CHECK-LABEL: func.func @concats_apart(
// CHECK-SAME:      %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<2x3xf32>, %[[C:.+]]: tensor<2x6xf32>)
// CHECK:         %[[AB:.+]] = tensor.concat dim(1) %[[A]], %[[B]]
// CHECK:         %[[ALL:.+]] = tensor.concat dim(1) %[[AB]], %[[C]]
// CHECK:         %[[BA:.+]] = tensor.concat dim(1) %[[B]], %[[A]]
// CHECK:         %[[BELOW:.+]] = tensor.concat dim(0) %[[BA]], %[[C]]
// CHECK:         return %[[ALL]], %[[AB]], %[[BELOW]]
func.func @concats_apart(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2x6xf32>)
    -> (tensor<2x12xf32>, tensor<2x6xf32>, tensor<4x6xf32>) {
  %ab = tensor.concat dim(1) %a, %b
      : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %all = tensor.concat dim(1) %ab, %c
      : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x12xf32>
  %ba = tensor.concat dim(1) %b, %a
      : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %below = tensor.concat dim(0) %ba, %c
      : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  return %all, %ab, %below : tensor<2x12xf32>, tensor<2x6xf32>, tensor<4x6xf32>
}

// -----

// A reshape that drops a dimension of extent one is part of the slice; one that makes one
// dimension of two others is none.
//
// CHECK-LABEL: func.func @reshaped(
// CHECK-SAME:      %[[X:.+]]: tensor<4x2x3xf32>)
// CHECK-NEXT:    %[[R:.+]] = tensor.extract_slice %[[X]][1, 0, 0] [1, 2, 3] [1, 1, 1]
// CHECK-SAME:        tensor<4x2x3xf32> to tensor<2x3xf32>
// CHECK-NEXT:    %[[S:.+]] = tensor.extract_slice %[[X]][2, 0, 0] [1, 2, 3] [1, 1, 1]
// CHECK-SAME:        tensor<4x2x3xf32> to tensor<1x2x3xf32>
// CHECK-NEXT:    %[[F:.+]] = tensor.collapse_shape %[[S]] {{\[}}[0], [1, 2]]
// CHECK-NEXT:    return %[[R]], %[[F]]
func.func @reshaped(%x: tensor<4x2x3xf32>) -> (tensor<2x3xf32>, tensor<1x6xf32>) {
  %a = tensor.extract_slice %x[1, 0, 0] [1, 2, 3] [1, 1, 1]
      : tensor<4x2x3xf32> to tensor<1x2x3xf32>
  %r = tensor.collapse_shape %a [[0, 1], [2]]
      : tensor<1x2x3xf32> into tensor<2x3xf32>
  %b = tensor.extract_slice %x[2, 0, 0] [1, 2, 3] [1, 1, 1]
      : tensor<4x2x3xf32> to tensor<1x2x3xf32>
  %f = tensor.collapse_shape %b [[0], [1, 2]]
      : tensor<1x2x3xf32> into tensor<1x6xf32>
  return %r, %f : tensor<2x3xf32>, tensor<1x6xf32>
}
