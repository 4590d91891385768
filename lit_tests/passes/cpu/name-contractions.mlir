// RUN: magweld-opt --name-contractions %s | filecheck %s

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, n, k)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#strided = affine_map<(b, m, n, k) -> (b, n, k * 2)>

// CHECK-DAG: #[[A:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[B:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[C:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @product(
// CHECK-SAME:      %[[X:.+]]: tensor<2x4x8xf32>, %[[Y:.+]]: tensor<2x16x8xf32>, %[[Z:.+]]: tensor<2x4x16xf32>)
// CHECK:         %[[R:.+]] = linalg.contract indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%[[X]], %[[Y]] : {{.+}}) outs(%[[Z]] : {{.+}})
// CHECK-NEXT:    return %[[R]]
func.func @product(%x: tensor<2x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> attributes {tile_graph.kernel} {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : tensor<2x4x8xf32>, tensor<2x16x8xf32>) outs(%z : tensor<2x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x16xf32>
  return %r : tensor<2x4x16xf32>
}

// An index that is not a loop itself has no place in linalg.contract.
// CHECK-LABEL: func.func @strided(
// CHECK-NOT:     linalg.contract
// CHECK:         linalg.generic
func.func @strided(%x: tensor<2x4x8xf32>, %y: tensor<2x16x16xf32>, %z: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> attributes {tile_graph.kernel} {
  %r = linalg.generic {indexing_maps = [#a, #strided, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : tensor<2x4x8xf32>, tensor<2x16x16xf32>) outs(%z : tensor<2x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x16xf32>
  return %r : tensor<2x4x16xf32>
}

// Another body is another operation.
// CHECK-LABEL: func.func @difference(
// CHECK-NOT:     linalg.contract
// CHECK:         linalg.generic
func.func @difference(%x: tensor<2x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> attributes {tile_graph.kernel} {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : tensor<2x4x8xf32>, tensor<2x16x8xf32>) outs(%z : tensor<2x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.subf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x16xf32>
  return %r : tensor<2x4x16xf32>
}
