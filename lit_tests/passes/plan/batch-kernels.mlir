// RUN: magweld-opt %s --batch-kernels --split-input-file | filecheck %s
// RUN: magweld-opt %s --batch-kernels="minimum=3 maximum=3" --split-input-file | filecheck %s --check-prefix=THREE
// RUN: magweld-opt %s --batch-kernels=depth=1 --split-input-file | filecheck %s --check-prefix=NEAR
// RUN: magweld-opt %s --batch-kernels=depth=2 --split-input-file | filecheck %s --check-prefix=DEEP
// RUN: magweld-opt %s --batch-kernels=launch-bytes=48 --split-input-file | filecheck %s --check-prefix=FITS
// RUN: magweld-opt %s --batch-kernels=launch-bytes=47 --split-input-file | filecheck %s --check-prefix=SPLIT
// RUN: magweld-opt %s --batch-kernels=member-bytes=49 --split-input-file | filecheck %s --check-prefix=SMALL
// RUN: magweld-opt %s --batch-kernels=member-bytes=32 --split-input-file | filecheck %s --check-prefix=LARGE

// Members have their own operands or share one; destinations follow all operands. What
// reads a member moves behind the batch.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      %[[A:[^:]+]]: tensor<4xf32>, %[[B:[^:]+]]: tensor<4xf32>, %[[W:[^:]+]]: tensor<4xf32>)
// CHECK:         %[[O1:.+]] = tensor.empty()
// CHECK:         %[[O2:.+]] = tensor.empty()
// CHECK:         %[[R:.+]]:2 = call @batch_0(%[[A]], %[[W]], %[[B]], %[[W]], %[[O1]], %[[O2]])
// CHECK-SAME:        tile_graph.operators = {{\[}}["x"], ["y"]]
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[R]]#0
// CHECK:         return %[[E]], %[[R]]#1
// CHECK:       func.func private @batch_0(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:    -> (tensor<4xf32>, tensor<4xf32>) attributes {magweld.batch = {kernel = @kernel_0, members = 2 : i64}}
//
// THREE-LABEL: func.func @main(
// THREE-SAME:      magweld.remarks = ["2 calls of @kernel_0 (x, y) are apart: few"]
// THREE-NOT:     @batch
//
// The pointers of two members are 48 bytes.
//
// FITS-LABEL: func.func @main(
// FITS:         call @batch_0(
//
// SPLIT-LABEL: func.func @main(
// SPLIT-SAME:      magweld.remarks = ["2 calls of @kernel_0 (x, y) are apart: few"]
// SPLIT-NOT:     @batch
// SPLIT-LABEL: func.func @main(
//
// A member moves 48 bytes: with a limit of 49 they are a batch.
//
// SMALL-LABEL: func.func @main(
// SMALL:         call @batch_0(
//
// LARGE-LABEL: func.func @main(
// LARGE-SAME:      magweld.remarks = ["2 calls of @kernel_0 (x, y) are apart: large"]
// LARGE-NOT:     @batch
func.func private @kernel_0(%x: tensor<4xf32>, %w: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %w, %o1) {tile_graph.operators = ["x"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_0(%b, %w, %o2) {tile_graph.operators = ["y"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// Two chains are two batches: what each link reads is made by the link before. The
// second chain begins with another kernel, behind which its first link waits.
//
// CHECK-LABEL: func.func @main(
// CHECK:         %[[K:.+]] = call @kernel_1(
// CHECK:         %[[F:.+]]:2 = call @batch_0(%{{[^,]+}}, %[[K]],
// CHECK:         %[[G:.+]]:2 = call @batch_1(%[[F]]#0, %[[F]]#1,
// CHECK:         return %[[G]]#0, %[[G]]#1
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_0(%1, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o3 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_1(%b, %o3) {tile_graph.operators = ["c"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o4 = tensor.empty() : tensor<4xf32>
  %4 = call @kernel_0(%3, %o4) {tile_graph.operators = ["d"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o5 = tensor.empty() : tensor<4xf32>
  %5 = call @kernel_0(%4, %o5) {tile_graph.operators = ["e"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// -----

// One chain has no two links that are independent.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      magweld.remarks = ["2 calls of @kernel_0 (a, b) are apart: few"]
// CHECK-NOT:     @batch
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %4 = call @kernel_0(%3, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// What torch runs keeps its order, although the first one waits for the batch.
//
// CHECK-LABEL: func.func @main(
// CHECK:         %[[R:.+]]:2 = call @batch_0(
// CHECK:         %[[X:.+]] = call @external_0(%[[R]]#0)
// CHECK:         %[[Y:.+]] = call @external_1(
// CHECK:         return %[[X]], %[[Y]], %[[R]]#1
func.func private @external_0(tensor<4xf32>) -> tensor<4xf32> attributes {magweld.external = "dropout"}
func.func private @external_1(tensor<4xf32>) -> tensor<4xf32> attributes {magweld.external = "dropout_1"}
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = call @external_0(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @external_1(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %4 = call @kernel_0(%b, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The second call waits for two others: levels 1 and 3 are within a depth of two, not
// of one.
//
// CHECK-LABEL: func.func @main(
// CHECK:         call @batch_0(
//
// NEAR-LABEL: func.func @main(
// NEAR-LABEL: func.func @main(
// NEAR-LABEL: func.func @main(
// NEAR-LABEL: func.func @main(
// NEAR-LABEL: func.func @main(
// NEAR-SAME:      magweld.remarks = ["2 calls of @kernel_0 (a, d) are apart: deep"]
// NEAR-NOT:     @batch
//
// DEEP-LABEL: func.func @main(
// DEEP-LABEL: func.func @main(
// DEEP-LABEL: func.func @main(
// DEEP-LABEL: func.func @main(
// DEEP-LABEL: func.func @main(
// DEEP-NOT:       magweld.remarks
// DEEP:         call @batch_0(
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_2(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.ceil ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o3 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_2(%2, %o3) {tile_graph.operators = ["c"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o4 = tensor.empty() : tensor<4xf32>
  %4 = call @kernel_0(%3, %o4) {tile_graph.operators = ["d"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A kernel whose tiles are counted when it is called is no member, nor is a library.
//
// CHECK-LABEL: func.func @main(
// CHECK-NOT:     @batch
func.func private @library_0(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {magweld.library = {op = "matmul"}}
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.runtime = {extent = 4 : i64, step = 4 : i64, beside = 1 : i64}} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_0(%b, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o3 = tensor.empty() : tensor<4xf32>
  %3 = call @library_0(%a, %o3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o4 = tensor.empty() : tensor<4xf32>
  %4 = call @library_0(%b, %o4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
