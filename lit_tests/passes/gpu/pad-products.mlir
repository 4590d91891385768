// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(pad-products{family=mma capacity=49152})" %s | filecheck %s
// RUN: magweld-opt --split-input-file --pad-products %s | filecheck %s --check-prefix=NONE
// RUN: magweld-opt --split-input-file --pass-pipeline="builtin.module(pad-products{family=mma capacity=8000})" %s | filecheck %s --check-prefix=NONE

// 49 rows are 64 with what lies behind them.
// CHECK-DAG: #[[LEFT:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RIGHT:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[SUM:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<49x64xf16>, %[[W:[a-z0-9]+]]: tensor<32x64xf16>
// CHECK:         %[[SUMS:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<64x32xf32>
// CHECK:         %[[ZEROS:.+]] = linalg.fill ins(%{{.+}}) outs(%[[SUMS]]
// CHECK-DAG:     %[[DEPTH:.+]] = arith.constant 64 : index
// CHECK-DAG:     %[[STEP:.+]] = arith.constant 32 : index
// CHECK:         %[[ALL:.+]] = scf.for %[[K:.+]] = %{{.+}} to %[[DEPTH]] step %[[STEP]] iter_args(%[[PART:.+]] = %[[ZEROS]])
// CHECK:           %[[MANY:.+]] = tensor.extract_slice %[[X]][0, %[[K]]] [49, 32]
// CHECK:           %[[TILE:.+]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<64x32xf16>
// CHECK:           %[[COPIED:.+]] = linalg.copy {{.*}}ins(%[[MANY]] : tensor<49x32xf16>)
// CHECK:           %[[A:.+]] = tensor.insert_slice %[[COPIED]] into %[[TILE]][0, 0] [49, 32]
// CHECK:           tensor.extract_slice %[[W]][0, %[[K]]] [32, 32]
// CHECK:           %[[B:.+]] = linalg.copy {{.*}}outs(%{{.+}} : tensor<32x32xf16>)
// CHECK:           linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #[[SUM]]], {{.+}} ins(%[[A]], %[[B]] : tensor<64x32xf16>, tensor<32x32xf16>) outs(%[[PART]] : tensor<64x32xf32>)
// CHECK:         %[[THROUGH:.+]] = linalg.copy {{.*}}ins(%[[ALL]]
// CHECK:         tensor.extract_slice %[[THROUGH]][0, 0] [49, 32]
// CHECK-NOT:     linalg.contract

// Without such instructions, or room for a step and the sums, threads compute it.
// NONE-LABEL: func.func @rows(
// NONE-NOT:     scf.for %
// NONE:         linalg.contract
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @rows(%x: tensor<49x64xf16>, %w: tensor<32x64xf16>, %out: tensor<49x32xf32>) -> tensor<49x32xf32> attributes {tile_graph.kernel, tile_graph.reduction_step = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<49x32xf32>) {
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<49x32xf32>) -> tensor<49x32xf32>
    %p = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<49x64xf16>, tensor<32x64xf16>) outs(%f : tensor<49x32xf32>) -> tensor<49x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [49, 32] [1, 1] : tensor<49x32xf32> into tensor<49x32xf32>
    }
  }
  return %r : tensor<49x32xf32>
}

// -----

// Rows and columns of few fragments get more of them, so that all subgroups have work;
// a step is the least where the schedule says nothing. Of several matrices a tile has one.
// CHECK-LABEL: func.func @few(
// CHECK:         %[[SUMS:.+]] = bufferization.alloc_tensor() {{.+}} : tensor<1x256x16xf32>
// CHECK:         scf.for
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, %{{.+}}] [1, 197, 16]
// CHECK:           tensor.insert_slice %{{.+}} into %{{.+}}[0, 0, 0] [1, 197, 16] [1, 1, 1] : tensor<1x197x16xf16> into tensor<1x256x16xf16>
// CHECK:         tensor.extract_slice %{{.+}}[0, 0, 0] [1, 197, 16]
#bx = affine_map<(b, m, n, k) -> (b, m, k)>
#bw = affine_map<(b, m, n, k) -> (b, n, k)>
#by = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @few(%x: tensor<1x197x48xf16>, %w: tensor<1x16x48xf16>, %out: tensor<1x197x16xf32>) -> tensor<1x197x16xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<1x197x16xf32>) {
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x197x16xf32>) -> tensor<1x197x16xf32>
    %p = linalg.contract indexing_maps = [#bx, #bw, #by] ins(%x, %w : tensor<1x197x48xf16>, tensor<1x16x48xf16>) outs(%f : tensor<1x197x16xf32>) -> tensor<1x197x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0, 0] [1, 197, 16] [1, 1, 1] : tensor<1x197x16xf32> into tensor<1x197x16xf32>
    }
  }
  return %r : tensor<1x197x16xf32>
}

// -----

// Whole fragments; less than half of what would be computed; f32; half a step; rows in
// memory that are no whole fragments; sums that do not begin at zero.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     scf.for %
// CHECK-COUNT-6: linalg.contract
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#t = affine_map<(m, n, k) -> (k, m)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @others(%a: tensor<32x64xf16>, %b: tensor<17x64xf16>, %c: tensor<49x64xf32>, %d: tensor<49x40xf16>, %e: tensor<64x49xf16>, %g: tensor<49x64xf16>,
    %w: tensor<16x64xf16>, %wc: tensor<16x64xf32>, %wd: tensor<16x40xf16>, %start: tensor<49x16xf32>, %out: tensor<245x16xf32>) -> tensor<245x16xf32> attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<245x16xf32>) {
    %ea = tensor.empty() : tensor<32x16xf32>
    %eb = tensor.empty() : tensor<17x16xf32>
    %ec = tensor.empty() : tensor<49x16xf32>
    %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<32x16xf32>) -> tensor<32x16xf32>
    %fb = linalg.fill ins(%zero : f32) outs(%eb : tensor<17x16xf32>) -> tensor<17x16xf32>
    %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<49x16xf32>) -> tensor<49x16xf32>
    %pa = linalg.contract indexing_maps = [#x, #w, #y] ins(%a, %w : tensor<32x64xf16>, tensor<16x64xf16>) outs(%fa : tensor<32x16xf32>) -> tensor<32x16xf32>
    %pb = linalg.contract indexing_maps = [#x, #w, #y] ins(%b, %w : tensor<17x64xf16>, tensor<16x64xf16>) outs(%fb : tensor<17x16xf32>) -> tensor<17x16xf32>
    %pc = linalg.contract indexing_maps = [#x, #w, #y] ins(%c, %wc : tensor<49x64xf32>, tensor<16x64xf32>) outs(%fc : tensor<49x16xf32>) -> tensor<49x16xf32>
    %pd = linalg.contract indexing_maps = [#x, #w, #y] ins(%d, %wd : tensor<49x40xf16>, tensor<16x40xf16>) outs(%fc : tensor<49x16xf32>) -> tensor<49x16xf32>
    %pe = linalg.contract indexing_maps = [#t, #w, #y] ins(%e, %w : tensor<64x49xf16>, tensor<16x64xf16>) outs(%fc : tensor<49x16xf32>) -> tensor<49x16xf32>
    %pg = linalg.contract indexing_maps = [#x, #w, #y] ins(%g, %w : tensor<49x64xf16>, tensor<16x64xf16>) outs(%start : tensor<49x16xf32>) -> tensor<49x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %pa into %o[0, 0] [32, 16] [1, 1] : tensor<32x16xf32> into tensor<245x16xf32>
      tensor.parallel_insert_slice %pb into %o[32, 0] [17, 16] [1, 1] : tensor<17x16xf32> into tensor<245x16xf32>
      tensor.parallel_insert_slice %pc into %o[49, 0] [49, 16] [1, 1] : tensor<49x16xf32> into tensor<245x16xf32>
      tensor.parallel_insert_slice %pd into %o[98, 0] [49, 16] [1, 1] : tensor<49x16xf32> into tensor<245x16xf32>
      tensor.parallel_insert_slice %pe into %o[147, 0] [49, 16] [1, 1] : tensor<49x16xf32> into tensor<245x16xf32>
      tensor.parallel_insert_slice %pg into %o[196, 0] [49, 16] [1, 1] : tensor<49x16xf32> into tensor<245x16xf32>
    }
  }
  return %r : tensor<245x16xf32>
}
