// RUN: magweld-opt --split-input-file --verify-diagnostics --map-tiles-to-blocks %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// The two tile loops become one over tile numbers; offsets come from the number.
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0) -> ((d0 floordiv 3) * 16)>
// CHECK-DAG: #[[COLUMN:.+]] = affine_map<(d0) -> ((d0 mod 3) * 32)>
// CHECK-LABEL: func.func @two_dimensions(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<64x96xf32> {bufferization.writable = false},
// CHECK-SAME:      %[[OUT:[a-z0-9]+]]: tensor<64x96xf32>)
// CHECK:         scf.forall (%[[N:.+]]) in (12) shared_outs(%[[O:.+]] = %[[OUT]])
// CHECK-DAG:       %[[I:.+]] = affine.apply #[[ROW]](%[[N]])
// CHECK-DAG:       %[[J:.+]] = affine.apply #[[COLUMN]](%[[N]])
// CHECK:           tensor.extract_slice %[[X]][%[[I]], %[[J]]] [16, 32]
// CHECK:           tensor.extract_slice %[[O]][%[[I]], %[[J]]] [16, 32]
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %[[O]][%[[I]], %[[J]]]
// CHECK:         {mapping = [#gpu.block<linear_dim_0>]}
func.func @two_dimensions(%x: tensor<64x96xf32>, %out: tensor<64x96xf32>) -> tensor<64x96xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%i, %j) = (0, 0) to (64, 96) step (16, 32) shared_outs(%o = %out) -> (tensor<64x96xf32>) {
    %s = tensor.extract_slice %x[%i, %j] [16, 32] [1, 1] : tensor<64x96xf32> to tensor<16x32xf32>
    %d = tensor.extract_slice %o[%i, %j] [16, 32] [1, 1] : tensor<64x96xf32> to tensor<16x32xf32>
    %y = linalg.exp ins(%s : tensor<16x32xf32>) outs(%d : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<64x96xf32>
    }
  }
  return %r : tensor<64x96xf32>
}

// -----

// Functions that are no kernels are left alone.
// CHECK-LABEL: func.func @no_kernel(
// CHECK-SAME:      %{{.+}}: tensor<8xf32>)
// CHECK:         scf.forall (%{{.+}}) = (0) to (8) step (4)
// CHECK-NOT:     mapping
func.func @no_kernel(%out: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.forall (%i) = (0) to (8) step (4) shared_outs(%o = %out) -> (tensor<8xf32>) {
    %d = tensor.extract_slice %o[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i] [4] [1] : tensor<4xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// -----

func.func @ragged(%out: tensor<10xf32>) -> tensor<10xf32> attributes {tile_graph.kernel} {
  // expected-error @+1 {{'scf.forall' op expected tiles to divide the extent 10, got 4}}
  %r = scf.forall (%i) = (0) to (10) step (4) shared_outs(%o = %out) -> (tensor<10xf32>) {
    scf.forall.in_parallel {
    }
  }
  return %r : tensor<10xf32>
}

// -----

func.func @computed(%out: tensor<8xf32>, %n: index) -> tensor<8xf32> attributes {tile_graph.kernel} {
  // expected-error @+1 {{'scf.forall' op expected static bounds}}
  %r = scf.forall (%i) = (0) to (%n) step (4) shared_outs(%o = %out) -> (tensor<8xf32>) {
    scf.forall.in_parallel {
    }
  }
  return %r : tensor<8xf32>
}

// -----

func.func @too_many(%out: tensor<f32>) -> tensor<f32> attributes {tile_graph.kernel} {
  // expected-error @+1 {{'scf.forall' op expected at most 2147483647 blocks, got 4294967296}}
  %r = scf.forall (%i, %j) in (65536, 65536) shared_outs(%o = %out) -> (tensor<f32>) {
    scf.forall.in_parallel {
    }
  }
  return %r : tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op expected one scf.forall over block tiles, got 0}}
func.func @no_tiles(%out: tensor<8xf32>) -> tensor<8xf32> attributes {tile_graph.kernel} {
  return %out : tensor<8xf32>
}
