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
