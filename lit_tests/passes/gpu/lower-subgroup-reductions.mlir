// RUN: magweld-opt --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(lower-subgroup-reductions{subgroup=32})" %s | filecheck %s

#own = affine_map<(d0) -> (d0)>

// Every lane gets what the one has whose number differs in one bit, and combines both:
// bit after bit. What a lane has alone needs no lane that writes.
// CHECK-DAG:     #[[LANE:.+]] = affine_map<(d0) -> (d0 mod 4)>
// CHECK-LABEL: func.func @sum(
// CHECK-SAME:      %[[OUT:[a-z0-9]+]]: memref<1xf32>
// CHECK:         %[[OWN:.+]] = memref.alloca
// CHECK:         %[[ALL:.+]] = memref.alloca
// CHECK:         %[[X:.+]] = memref.load %[[OWN]]
// CHECK:         %[[TWO:.+]] = arith.constant 2 : i32
// CHECK:         %[[WIDTH:.+]] = arith.constant 32 : i32
// CHECK:         %[[Y:.+]], %{{.+}} = gpu.shuffle xor %[[X]], %[[TWO]], %[[WIDTH]] : f32
// CHECK:         %[[PAIR:.+]] = arith.addf %[[X]], %[[Y]]
// CHECK:         %[[ONE:.+]] = arith.constant 1 : i32
// CHECK:         %[[Z:.+]], %{{.+}} = gpu.shuffle xor %[[PAIR]], %[[ONE]], %{{.+}} : f32
// CHECK:         %[[TOTAL:.+]] = arith.addf %[[PAIR]], %[[Z]]
// CHECK:         memref.store %[[TOTAL]], %[[OWN]]
// CHECK-NOT:     scf.if
// CHECK:         linalg.generic {{.+}} ins(%[[OWN]] : {{.+}}) outs(%[[ALL]] :
// CHECK:         %[[THREAD:.+]] = gpu.thread_id x
// CHECK:         %[[NUMBER:.+]] = affine.apply #[[LANE]](%[[THREAD]])
// CHECK:         %[[FIRST:.+]] = arith.cmpi eq, %[[NUMBER]], %{{.+}}
// CHECK:         scf.if %[[FIRST]] {
// CHECK-NEXT:      linalg.generic {{.+}} ins(%[[ALL]] : {{.+}}) outs(%[[OUT]] :
// CHECK-NOT:     gpu.shuffle
// CHECK-NOT:     tile_graph.subgroup_reduction
func.func @sum(%out: memref<1xf32>) attributes {tile_graph.kernel} {
  %own = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
  %all = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : memref<1xf32, #gpu.address_space<private>>) outs(%all : memref<1xf32, #gpu.address_space<private>>) attrs = {tile_graph.subgroup_reduction = 4 : i64} {
  ^bb0(%x: f32, %sum: f32):
    %0 = arith.addf %x, %sum : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%all : memref<1xf32, #gpu.address_space<private>>) outs(%out : memref<1xf32>) attrs = {tile_graph.subgroup_reduction = 4 : i64} {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

#own = affine_map<(d0) -> (d0)>

// Halves are exchanged as f32, which holds them exactly. Lanes combine in steps of 16,
// 8, 4, 2 and 1, for each of two results; what the output held counts once.
// CHECK-LABEL: func.func @largest(
// CHECK-COUNT-10: gpu.shuffle xor %{{.+}} : f32
// CHECK-NOT:      gpu.shuffle
// CHECK:          scf.if
// CHECK-NEXT:       linalg.generic
// CHECK:              arith.maximumf
func.func @largest(%out: memref<2xf16>) attributes {tile_graph.kernel} {
  %own = memref.alloca() : memref<2xf16, #gpu.address_space<private>>
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : memref<2xf16, #gpu.address_space<private>>) outs(%out : memref<2xf16>) attrs = {tile_graph.subgroup_reduction = 32 : i64} {
  ^bb0(%x: f16, %most: f16):
    %0 = arith.maximumf %x, %most : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

#own = affine_map<(d0) -> (d0)>

func.func @too_many(%out: memref<1xf32>) attributes {tile_graph.kernel} {
  %own = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
  // expected-error @+1 {{expected a power of two of at most 32 lanes}}
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%own : memref<1xf32, #gpu.address_space<private>>) outs(%out : memref<1xf32>) attrs = {tile_graph.subgroup_reduction = 64 : i64} {
  ^bb0(%x: f32, %sum: f32):
    %0 = arith.addf %x, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#own = affine_map<(d0) -> (d0)>

func.func @not_alone(%in: memref<1xf32>, %out: memref<1xf32>) attributes {tile_graph.kernel} {
  // expected-error @+1 {{expected what a lane has alone, got memref<1xf32>}}
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel"]} ins(%in : memref<1xf32>) outs(%out : memref<1xf32>) attrs = {tile_graph.subgroup_reduction = 2 : i64} {
  ^bb0(%x: f32, %sum: f32):
    %0 = arith.addf %x, %sum : f32
    linalg.yield %0 : f32
  }
  return
}
