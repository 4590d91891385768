// RUN: magweld-opt --split-input-file --stage-in-shared-memory="reuse-bytes=1024" %s | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// Operands of a contraction are copied in every step; the accumulator, which would be
// filled in the destination, and the tile between the operations get buffers.
// CHECK-LABEL: func.func @contraction(
// CHECK-SAME:      %[[A:[a-z0-9]+]]: tensor<16x32xf32>, %[[B:[a-z0-9]+]]: tensor<32x16xf32>
// CHECK:           %[[ACC:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<16x16xf32>
// CHECK:           linalg.fill ins(%{{.+}}) outs(%[[ACC]] : tensor<16x16xf32>)
// CHECK:           scf.for %
// CHECK:             %[[KA:.+]] = tensor.extract_slice %[[A]]
// CHECK:             %[[KB:.+]] = tensor.extract_slice %[[B]]
// CHECK:             %[[TA:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<16x8xf32>
// CHECK:             %[[SA:.+]] = linalg.copy {{.*}}ins(%[[KA]] : {{.+}}) outs(%[[TA]] :
// CHECK:             %[[TB:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<8x16xf32>
// CHECK:             %[[SB:.+]] = linalg.copy {{.*}}ins(%[[KB]] : {{.+}}) outs(%[[TB]] :
// CHECK:             linalg.matmul ins(%[[SA]], %[[SB]] :
func.func @contraction(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %out: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<16x16xf32>) {
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    %y = scf.for %k = %c0 to %c32 step %c8 iter_args(%acc = %f) -> (tensor<16x16xf32>) {
      %ka = tensor.extract_slice %a[0, %k] [16, 8] [1, 1] : tensor<16x32xf32> to tensor<16x8xf32>
      %kb = tensor.extract_slice %b[%k, 0] [8, 16] [1, 1] : tensor<32x16xf32> to tensor<8x16xf32>
      %s = linalg.matmul ins(%ka, %kb : tensor<16x8xf32>, tensor<8x16xf32>) outs(%acc : tensor<16x16xf32>) -> tensor<16x16xf32>
      scf.yield %s : tensor<16x16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A tile that two operations read is copied once; one that is too large is not.
// CHECK-LABEL: func.func @read_twice(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<64x32xf32>, %[[BIG:[a-z0-9]+]]: tensor<64x32xf32>
// CHECK:           %[[TILE:.+]] = tensor.extract_slice %[[X]]
// CHECK:           %[[T:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<4x32xf32>
// CHECK:           %[[S:.+]] = linalg.copy {{.*}}ins(%[[TILE]] : {{.+}}) outs(%[[T]] :
// CHECK:           linalg.exp ins(%[[S]] :
// CHECK:           linalg.add ins(%{{.+}}, %[[S]] :
// CHECK:           %[[WHOLE:.+]] = tensor.extract_slice %[[BIG]]
// CHECK-NOT:       linalg.copy
// CHECK:           linalg.exp ins(%[[WHOLE]] :
func.func @read_twice(%x: tensor<64x32xf32>, %big: tensor<64x32xf32>, %out: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%i) in (16) shared_outs(%o = %out) -> (tensor<64x32xf32>) {
    %t = tensor.extract_slice %x[%i, 0] [4, 32] [1, 1] : tensor<64x32xf32> to tensor<4x32xf32>
    %e = tensor.empty() : tensor<4x32xf32>
    %y = linalg.exp ins(%t : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
    %d = tensor.extract_slice %o[%i, 0] [4, 32] [1, 1] : tensor<64x32xf32> to tensor<4x32xf32>
    %z = linalg.add ins(%y, %t : tensor<4x32xf32>, tensor<4x32xf32>) outs(%d : tensor<4x32xf32>) -> tensor<4x32xf32>
    %w = tensor.extract_slice %big[%i, 0] [16, 32] [1, 1] : tensor<64x32xf32> to tensor<16x32xf32>
    %e1 = tensor.empty() : tensor<16x32xf32>
    %p = linalg.exp ins(%w : tensor<16x32xf32>) outs(%e1 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %q = linalg.add ins(%p, %w : tensor<16x32xf32>, tensor<16x32xf32>) outs(%e1 : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[%i, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<64x32xf32>
    }
  }
  return %r : tensor<64x32xf32>
}

// -----

// The plan leaves no room for a copy of 512 bytes in the 48 KiB of a block.
// CHECK-LABEL: func.func @no_room(
// CHECK-NOT:       linalg.copy
// CHECK:           return
func.func @no_room(%x: tensor<64x32xf32>, %out: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {tile_graph.kernel, tile_graph.footprint = 48700 : i64} {
  %r = scf.forall (%i) in (16) shared_outs(%o = %out) -> (tensor<64x32xf32>) {
    %t = tensor.extract_slice %x[%i, 0] [4, 32] [1, 1] : tensor<64x32xf32> to tensor<4x32xf32>
    %e = tensor.empty() : tensor<4x32xf32>
    %y = linalg.exp ins(%t : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
    %d = tensor.extract_slice %o[%i, 0] [4, 32] [1, 1] : tensor<64x32xf32> to tensor<4x32xf32>
    %z = linalg.add ins(%y, %t : tensor<4x32xf32>, tensor<4x32xf32>) outs(%d : tensor<4x32xf32>) -> tensor<4x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[%i, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<64x32xf32>
    }
  }
  return %r : tensor<64x32xf32>
}

// -----

// Of a copy that the plan makes for who reads across rows, dimensions that are one row
// in memory become one.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<4x8x2x16xf32>
// CHECK:           %[[TILE:.+]] = tensor.extract_slice %[[X]]
// CHECK:           %[[ROWS:.+]] = tensor.collapse_shape %[[TILE]] {{\[}}[0], [1], [2, 3]] : tensor<1x8x2x16xf32> into tensor<1x8x32xf32>
// CHECK:           %[[T:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<1x8x32xf32>
// CHECK:           %[[S:.+]] = linalg.copy {{.*}}ins(%[[ROWS]] : {{.+}}) outs(%[[T]] :
// CHECK:           %[[BACK:.+]] = tensor.expand_shape %[[S]] {{\[}}[0], [1], [2, 3]]
// CHECK-NOT:       linalg.copy
// CHECK:           linalg.transpose ins(%[[BACK]] :
func.func @transposed(%x: tensor<4x8x2x16xf32>, %out: tensor<4x2x16x8xf32>) -> tensor<4x2x16x8xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%i) in (4) shared_outs(%o = %out) -> (tensor<4x2x16x8xf32>) {
    %t = tensor.extract_slice %x[%i, 0, 0, 0] [1, 8, 2, 16] [1, 1, 1, 1] : tensor<4x8x2x16xf32> to tensor<1x8x2x16xf32>
    %e = tensor.empty() : tensor<1x8x2x16xf32>
    %c = linalg.copy ins(%t : tensor<1x8x2x16xf32>) outs(%e : tensor<1x8x2x16xf32>) -> tensor<1x8x2x16xf32>
    %d = tensor.extract_slice %o[%i, 0, 0, 0] [1, 2, 16, 8] [1, 1, 1, 1] : tensor<4x2x16x8xf32> to tensor<1x2x16x8xf32>
    %y = linalg.transpose ins(%c : tensor<1x8x2x16xf32>) outs(%d : tensor<1x2x16x8xf32>) permutation = [0, 2, 3, 1]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0, 0, 0] [1, 2, 16, 8] [1, 1, 1, 1] : tensor<1x2x16x8xf32> into tensor<4x2x16x8xf32>
    }
  }
  return %r : tensor<4x2x16x8xf32>
}

// -----

// Rows that are parts of those in memory stay as they are. What the plan does not copy
// is read where it is.
// CHECK-LABEL: func.func @part(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<8x2x64xf32>, %[[Y:[a-z0-9]+]]: tensor<8x2x16xf32>
// CHECK-NOT:       tensor.collapse_shape
// CHECK:           %[[T:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<8x2x16xf32>
// CHECK:           %[[S:.+]] = linalg.copy {{.*}}outs(%[[T]] :
// CHECK:           linalg.transpose ins(%[[S]] :
// CHECK-NOT:       bufferization.alloc_tensor
// CHECK:           linalg.transpose ins(%[[Y]] :
func.func @part(%x: tensor<8x2x64xf32>, %y: tensor<8x2x16xf32>, %out: tensor<2x64x8xf32>, %other: tensor<2x16x8xf32>) -> (tensor<2x64x8xf32>, tensor<2x16x8xf32>) attributes {tile_graph.kernel} {
  %r:2 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%o = %out, %p = %other) -> (tensor<2x64x8xf32>, tensor<2x16x8xf32>) {
    %t = tensor.extract_slice %x[0, 0, %i] [8, 2, 16] [1, 1, 1] : tensor<8x2x64xf32> to tensor<8x2x16xf32>
    %e = tensor.empty() : tensor<8x2x16xf32>
    %c = linalg.copy ins(%t : tensor<8x2x16xf32>) outs(%e : tensor<8x2x16xf32>) -> tensor<8x2x16xf32>
    %d = tensor.extract_slice %o[0, %i, 0] [2, 16, 8] [1, 1, 1] : tensor<2x64x8xf32> to tensor<2x16x8xf32>
    %u = linalg.transpose ins(%c : tensor<8x2x16xf32>) outs(%d : tensor<2x16x8xf32>) permutation = [1, 2, 0]
    %v = linalg.transpose ins(%y : tensor<8x2x16xf32>) outs(%p : tensor<2x16x8xf32>) permutation = [1, 2, 0]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %o[0, %i, 0] [2, 16, 8] [1, 1, 1] : tensor<2x16x8xf32> into tensor<2x64x8xf32>
      tensor.parallel_insert_slice %v into %p[0, 0, 0] [2, 16, 8] [1, 1, 1] : tensor<2x16x8xf32> into tensor<2x16x8xf32>
    }
  }
  return %r#0, %r#1 : tensor<2x64x8xf32>, tensor<2x16x8xf32>
}

// -----

// Others that read such a tile read the copy, where there is room for it as long.
// CHECK-LABEL: func.func @others(
// CHECK:           %[[S:.+]] = linalg.copy
// CHECK-NOT:       linalg.copy
// CHECK:           linalg.exp ins(%[[S]] :
// CHECK:           linalg.transpose ins(%[[S]] :
func.func @others(%x: tensor<64x16xf32>, %out: tensor<64x16xf32>, %other: tensor<16x64xf32>) -> (tensor<64x16xf32>, tensor<16x64xf32>) attributes {tile_graph.kernel} {
  %r:2 = scf.forall (%i) = (0) to (64) step (8) shared_outs(%o = %out, %p = %other) -> (tensor<64x16xf32>, tensor<16x64xf32>) {
    %t = tensor.extract_slice %x[%i, 0] [8, 16] [1, 1] : tensor<64x16xf32> to tensor<8x16xf32>
    %d = tensor.extract_slice %o[%i, 0] [8, 16] [1, 1] : tensor<64x16xf32> to tensor<8x16xf32>
    %u = linalg.exp ins(%t : tensor<8x16xf32>) outs(%d : tensor<8x16xf32>) -> tensor<8x16xf32>
    %e = tensor.empty() : tensor<8x16xf32>
    %c = linalg.copy ins(%t : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
    %f = tensor.extract_slice %p[0, %i] [16, 8] [1, 1] : tensor<16x64xf32> to tensor<16x8xf32>
    %v = linalg.transpose ins(%c : tensor<8x16xf32>) outs(%f : tensor<16x8xf32>) permutation = [1, 0]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %o[%i, 0] [8, 16] [1, 1] : tensor<8x16xf32> into tensor<64x16xf32>
      tensor.parallel_insert_slice %v into %p[0, %i] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x64xf32>
    }
  }
  return %r#0, %r#1 : tensor<64x16xf32>, tensor<16x64xf32>
}

// -----

// Rows of seven words that lie side by side are copied as one for a product; a part of
// wider rows, and rows of eight words, stay rows.
// CHECK-LABEL: func.func @odd_rows(
// CHECK-SAME:      %[[A:[a-z0-9]+]]: tensor<16x12xf32>, %[[B:[a-z0-9]+]]: tensor<12x7xf32>, %[[C:[a-z0-9]+]]: tensor<12x14xf32>, %[[D:[a-z0-9]+]]: tensor<12x8xf32>
// CHECK:           %[[TILE:.+]] = tensor.extract_slice %[[B]][0, 0] [4, 7]
// CHECK:           linalg.copy {{.*}}outs(%{{.+}} : tensor<16x4xf32>)
// CHECK:           %[[ROW:.+]] = tensor.collapse_shape %[[TILE]] {{\[}}[0, 1]] : tensor<4x7xf32> into tensor<28xf32>
// CHECK:           %[[T:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<28xf32>
// CHECK:           %[[S:.+]] = linalg.copy {{.*}}ins(%[[ROW]] : {{.+}}) outs(%[[T]] :
// CHECK:           %[[BACK:.+]] = tensor.expand_shape %[[S]] {{\[}}[0, 1]]
// CHECK:           linalg.matmul ins(%{{.+}}, %[[BACK]] :
// CHECK-NOT:       tensor.collapse_shape
// CHECK:           linalg.matmul
// CHECK-NOT:       tensor.collapse_shape
// CHECK:           linalg.matmul
func.func @odd_rows(%a: tensor<16x12xf32>, %b: tensor<12x7xf32>, %c: tensor<12x14xf32>, %d: tensor<12x8xf32>, %o: tensor<16x7xf32>, %p: tensor<16x7xf32>, %q: tensor<16x8xf32>) -> (tensor<16x7xf32>, tensor<16x7xf32>, tensor<16x8xf32>) attributes {tile_graph.kernel} {
  %r:3 = scf.forall (%n) in (1) shared_outs(%u = %o, %v = %p, %w = %q) -> (tensor<16x7xf32>, tensor<16x7xf32>, tensor<16x8xf32>) {
    %ka = tensor.extract_slice %a[0, 0] [16, 4] [1, 1] : tensor<16x12xf32> to tensor<16x4xf32>
    %kb = tensor.extract_slice %b[0, 0] [4, 7] [1, 1] : tensor<12x7xf32> to tensor<4x7xf32>
    %kc = tensor.extract_slice %c[0, 7] [4, 7] [1, 1] : tensor<12x14xf32> to tensor<4x7xf32>
    %kd = tensor.extract_slice %d[0, 0] [4, 8] [1, 1] : tensor<12x8xf32> to tensor<4x8xf32>
    %x = linalg.matmul ins(%ka, %kb : tensor<16x4xf32>, tensor<4x7xf32>) outs(%u : tensor<16x7xf32>) -> tensor<16x7xf32>
    %y = linalg.matmul ins(%ka, %kc : tensor<16x4xf32>, tensor<4x7xf32>) outs(%v : tensor<16x7xf32>) -> tensor<16x7xf32>
    %z = linalg.matmul ins(%ka, %kd : tensor<16x4xf32>, tensor<4x8xf32>) outs(%w : tensor<16x8xf32>) -> tensor<16x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %u[0, 0] [16, 7] [1, 1] : tensor<16x7xf32> into tensor<16x7xf32>
      tensor.parallel_insert_slice %y into %v[0, 0] [16, 7] [1, 1] : tensor<16x7xf32> into tensor<16x7xf32>
      tensor.parallel_insert_slice %z into %w[0, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x8xf32>
    }
  }
  return %r#0, %r#1, %r#2 : tensor<16x7xf32>, tensor<16x7xf32>, tensor<16x8xf32>
}

// -----

// A slice of a slice is a row where the outer one has whole rows.
// CHECK-LABEL: func.func @slices_of_slices(
// CHECK:           tensor.collapse_shape %{{.+}} {{\[}}[0], [1, 2]] : tensor<1x4x7xf32> into tensor<1x28xf32>
// CHECK-NOT:       tensor.collapse_shape
// CHECK:           return
func.func @slices_of_slices(%a: tensor<2x16x4xf32>, %b: tensor<2x12x7xf32>, %c: tensor<2x12x14xf32>, %o: tensor<1x16x7xf32>, %p: tensor<1x16x7xf32>) -> (tensor<1x16x7xf32>, tensor<1x16x7xf32>) attributes {tile_graph.kernel} {
  %r:2 = scf.forall (%n) in (2) shared_outs(%u = %o, %v = %p) -> (tensor<1x16x7xf32>, tensor<1x16x7xf32>) {
    %ka = tensor.extract_slice %a[%n, 0, 0] [1, 16, 4] [1, 1, 1] : tensor<2x16x4xf32> to tensor<1x16x4xf32>
    %nb = tensor.extract_slice %b[%n, 0, 0] [1, 12, 7] [1, 1, 1] : tensor<2x12x7xf32> to tensor<1x12x7xf32>
    %kb = tensor.extract_slice %nb[0, 4, 0] [1, 4, 7] [1, 1, 1] : tensor<1x12x7xf32> to tensor<1x4x7xf32>
    %nc = tensor.extract_slice %c[%n, 0, 0] [1, 12, 7] [1, 1, 1] : tensor<2x12x14xf32> to tensor<1x12x7xf32>
    %kc = tensor.extract_slice %nc[0, 4, 0] [1, 4, 7] [1, 1, 1] : tensor<1x12x7xf32> to tensor<1x4x7xf32>
    %x = linalg.batch_matmul ins(%ka, %kb : tensor<1x16x4xf32>, tensor<1x4x7xf32>) outs(%u : tensor<1x16x7xf32>) -> tensor<1x16x7xf32>
    %y = linalg.batch_matmul ins(%ka, %kc : tensor<1x16x4xf32>, tensor<1x4x7xf32>) outs(%v : tensor<1x16x7xf32>) -> tensor<1x16x7xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %u[0, 0, 0] [1, 16, 7] [1, 1, 1] : tensor<1x16x7xf32> into tensor<1x16x7xf32>
      tensor.parallel_insert_slice %y into %v[0, 0, 0] [1, 16, 7] [1, 1, 1] : tensor<1x16x7xf32> into tensor<1x16x7xf32>
    }
  }
  return %r#0, %r#1 : tensor<1x16x7xf32>, tensor<1x16x7xf32>
}

// -----

// Weights of windows are copied in front of them, as one row where they lie so; the image
// is read where it is.
// CHECK-LABEL: func.func @weights(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<1x4x6x10xf32>, %[[W:[a-z0-9]+]]: tensor<4x4x3x3xf32>
// CHECK:           %[[ROW:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0, 1, 2, 3]] : tensor<4x4x3x3xf32> into tensor<144xf32>
// CHECK:           %[[T:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<144xf32>
// CHECK:           %[[S:.+]] = linalg.copy {{.*}}ins(%[[ROW]] : {{.+}}) outs(%[[T]] :
// CHECK:           %[[BACK:.+]] = tensor.expand_shape %[[S]] {{\[}}[0, 1, 2, 3]]
// CHECK:           linalg.conv_2d_nchw_fchw {{.*}}ins(%[[X]], %[[BACK]] :
func.func @weights(%x: tensor<1x4x6x10xf32>, %w: tensor<4x4x3x3xf32>, %out: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> attributes {tile_graph.kernel} {
  %r = scf.forall (%n) in (1) shared_outs(%o = %out) -> (tensor<1x4x4x8xf32>) {
    %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x4x6x10xf32>, tensor<4x4x3x3xf32>) outs(%o : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0, 0] [1, 4, 4, 8] [1, 1, 1, 1] : tensor<1x4x4x8xf32> into tensor<1x4x4x8xf32>
    }
  }
  return %r : tensor<1x4x4x8xf32>
}
