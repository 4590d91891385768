// DEFINE: %{cpu} = device=%S/Inputs/four-cores.toml#four-cores
// RUN: magweld-opt %s --co-schedule-kernels=%{cpu} --split-input-file | filecheck %s
// RUN: magweld-opt %s --co-schedule-kernels=device=%S/Inputs/four-cores.toml#slow-start --split-input-file | filecheck %s --check-prefix=SLOW
// RUN: magweld-opt %s --co-schedule-kernels="%{cpu} part-bytes=32" --split-input-file | filecheck %s --check-prefix=LARGE
// RUN: magweld-opt %s --co-schedule-kernels=device=a100 --split-input-file | filecheck %s --check-prefix=GPU

// Two kernels are one launch: operands of one after those of the other, destinations
// behind all operands, 24 and 48 us of one core. What reads a part moves behind them.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      %[[A:[^:]+]]: tensor<4xf32>, %[[B:[^:]+]]: tensor<4xf32>, %[[W:[^:]+]]: tensor<4xf32>)
// CHECK-NOT:     magweld.remarks
// CHECK:         %[[O1:.+]] = tensor.empty()
// CHECK:         %[[O2:.+]] = tensor.empty()
// CHECK:         %[[R:.+]]:2 = call @joint_0(%[[A]], %[[B]], %[[W]], %[[O1]], %[[O2]])
// CHECK-SAME:        tile_graph.operators = {{\[}}["x"], ["y"]]
// CHECK:         %[[E:.+]] = tensor.expand_shape %[[R]]#0
// CHECK:         return %[[E]], %[[R]]#1
// CHECK:       func.func private @joint_0(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:    -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:    attributes {magweld.joint = [{callee = @kernel_0, share = 24000 : i64}, {callee = @kernel_1, share = 48000 : i64}]}
//
// Cores that take long to start are not worth it.
//
// SLOW-LABEL: func.func @main(
// SLOW-SAME:      magweld.remarks = ["2 calls of @kernel_0, @kernel_1 are apart: no faster (9.8e-05 s together, 7.2e-05 s apart)"]
// SLOW-NOT:     @joint
//
// One moves 32 bytes, the other one 48.
//
// LARGE-LABEL: func.func @main(
// LARGE-NOT:     @joint
//
// GPU-NOT: @joint
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %w: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 15.0e-06 : f64} {
  %0 = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["x"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_1(%b, %w, %o2) {tile_graph.operators = ["y"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// A batch is a part, with the time of its two members.
//
// CHECK-LABEL: func.func @main(
// CHECK:         %[[R:.+]]:3 = call @joint_0(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}})
// CHECK-SAME:        tile_graph.operators = {{\[}}{{\[}}["a"], ["b"]], ["c"]]
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK:         magweld.joint = [{callee = @batch_0, share = 48000 : i64}, {callee = @kernel_1, share = 48000 : i64}]
func.func private @batch_0(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {magweld.batch = {kernel = @kernel_0, members = 2 : i64}}
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 15.0e-06 : f64} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %1:2 = call @batch_0(%a, %b, %o1, %o2) {tile_graph.operators = [["a"], ["b"]]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %o3 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_1(%c, %o3) {tile_graph.operators = ["c"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1#0, %1#1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The second kernel reads what the first one makes, through a reshape.
//
// CHECK-LABEL: func.func @main(
// CHECK-NOT:     magweld.remarks
// CHECK-NOT:     @joint
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<2x2xf32>, %o: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 15.0e-06 : f64} {
  %0 = linalg.abs ins(%x : tensor<2x2xf32>) outs(%o : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<2x2xf32> {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %o2 = tensor.empty() : tensor<2x2xf32>
  %3 = call @kernel_1(%2, %o2) {tile_graph.operators = ["b"]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

// -----

// Kernels of which one keeps its core busy longer than all take together gain nothing,
// nor do those that are done before other cores have started.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      magweld.remarks = ["2 calls of @kernel_0, @kernel_1 are apart: no faster (2.7e-05 s together, 2.5e-05 s apart)"]
// CHECK-NOT:     @joint
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 3.25e-06 : f64} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// One kernel has no predicted time, and one an extent that a call tells.
//
// CHECK-LABEL: func.func @main(
// CHECK-NOT:     magweld.remarks
// CHECK-NOT:     @joint
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_2(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64, tile_graph.runtime = {extent = 4 : i64, step = 4 : i64, beside = 1 : i64}} {
  %0 = linalg.ceil ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o3 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_2(%c, %o3) {tile_graph.operators = ["c"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Equal calls, which a rule of batches keeps apart, stay launches of their own, beside
// what is joined.
//
// CHECK-LABEL: func.func @main(
// CHECK-DAG:     call @kernel_0(
// CHECK-DAG:     call @kernel_0(
// CHECK-DAG:     call @joint_0(
// CHECK:         magweld.joint = [{callee = @kernel_1, share = 24000 : i64}, {callee = @kernel_2, share = 24000 : i64}]
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.abs ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel_2(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 9.0e-06 : f64} {
  %0 = linalg.ceil ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %o1 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["a"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o2 = tensor.empty() : tensor<4xf32>
  %2 = call @kernel_1(%a, %o2) {tile_graph.operators = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o3 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_0(%b, %o3) {tile_graph.operators = ["c"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o4 = tensor.empty() : tensor<4xf32>
  %4 = call @kernel_2(%b, %o4) {tile_graph.operators = ["d"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
