// DEFINE: %{gpu} = device=%S/Inputs/four-cores.toml#four-units
// RUN: magweld-opt %s --co-schedule-kernels=%{gpu} --split-input-file | filecheck %s
// RUN: magweld-opt %s --co-schedule-kernels="%{gpu} launch-bytes=32" --split-input-file | filecheck %s --check-prefix=FITS
// RUN: magweld-opt %s --co-schedule-kernels="%{gpu} launch-bytes=31" --split-input-file | filecheck %s --check-prefix=SPLIT

// Kernels with different bodies and extents: four blocks and two are there at one time. Of
// 2 and 4 us the memory is busy for 1 and 2, so that together they take 3 + 4 us instead of
// 5 + 7. Their four pointers are 32 bytes.
//
// CHECK-LABEL: func.func @main(
// CHECK-NOT:     magweld.remarks
// CHECK:         %[[R:.+]]:2 = call @joint_0(
// CHECK:         magweld.joint = [{callee = @kernel_0, share = 2000 : i64}, {callee = @kernel_1, share = 4000 : i64}]
//
// FITS-LABEL:  func.func @main(
// FITS:          call @joint_0(
//
// SPLIT-LABEL: func.func @main(
// SPLIT-NOT:     @joint
func.func private @kernel_0(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 5.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 16000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func private @kernel_1(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 7.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 32000 : i64}} {
  %0 = scf.forall (%i) = (0) to (8) step (4) shared_outs(%d = %o) -> (tensor<8xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %e = linalg.abs ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<8xf32>
    }
  }
  return %0 : tensor<8xf32>
}
func.func @main(%a: tensor<16xf32>, %b: tensor<8xf32>) -> (tensor<16xf32>, tensor<8xf32>) {
  %o1 = tensor.empty() : tensor<16xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["x"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %o2 = tensor.empty() : tensor<8xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["y"]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<16xf32>, tensor<8xf32>
}

// -----

// Forty blocks are more than the units have room for at one time. Kernels that leave room
// for as many blocks run one after another: 9 us are less than four fifths of 12.
//
// CHECK-LABEL: func.func @main(
// CHECK:         call @joint_0(
func.func private @kernel_0(%x: tensor<144xf32>, %o: tensor<144xf32>) -> tensor<144xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 5.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 16000 : i64}} {
  %0 = scf.forall (%i) = (0) to (144) step (4) shared_outs(%d = %o) -> (tensor<144xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<144xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<144xf32> to tensor<4xf32>
    %e = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<144xf32>
    }
  }
  return %0 : tensor<144xf32>
}
func.func private @kernel_1(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 7.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 16000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.abs ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func @main(%a: tensor<144xf32>, %b: tensor<16xf32>) -> (tensor<144xf32>, tensor<16xf32>) {
  %o1 = tensor.empty() : tensor<144xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["x"]} : (tensor<144xf32>, tensor<144xf32>) -> tensor<144xf32>
  %o2 = tensor.empty() : tensor<16xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["y"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1, %2 : tensor<144xf32>, tensor<16xf32>
}

// -----

// A block of the second kernel takes all the memory of a unit, which leaves room for one
// of the first kernel where there were eight.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      magweld.remarks = ["2 calls of @kernel_0, @kernel_1 are apart: no faster (inf s together, 1.2e-05 s apart)"]
// CHECK-NOT:     @joint
func.func private @kernel_0(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 5.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 16000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func private @kernel_1(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 7.0e-06 : f64, tile_graph.footprint = 65536 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 16000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.abs ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func @main(%a: tensor<16xf32>, %b: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %o1 = tensor.empty() : tensor<16xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["x"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %o2 = tensor.empty() : tensor<16xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["y"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1, %2 : tensor<16xf32>, tensor<16xf32>
}

// -----

// The memory is busy all the time: one launch less is little.
//
// CHECK-LABEL: func.func @main(
// CHECK-SAME:      magweld.remarks = ["2 calls of @kernel_0, @kernel_1 are apart: no faster (2.3e-05 s together, 2.6e-05 s apart)"]
// CHECK-NOT:     @joint
func.func private @kernel_0(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 13.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 160000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func private @kernel_1(%x: tensor<16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {tile_graph.kernel, tile_graph.predicted_seconds = 13.0e-06 : f64, tile_graph.footprint = 1024 : i64, tile_graph.level = "shared", tile_graph.moved_after = {global = 160000 : i64}} {
  %0 = scf.forall (%i) = (0) to (16) step (4) shared_outs(%d = %o) -> (tensor<16xf32>) {
    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = tensor.extract_slice %d[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %e = linalg.abs ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %d[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %0 : tensor<16xf32>
}
func.func @main(%a: tensor<16xf32>, %b: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %o1 = tensor.empty() : tensor<16xf32>
  %1 = call @kernel_0(%a, %o1) {tile_graph.operators = ["x"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %o2 = tensor.empty() : tensor<16xf32>
  %2 = call @kernel_1(%b, %o2) {tile_graph.operators = ["y"]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1, %2 : tensor<16xf32>, tensor<16xf32>
}
