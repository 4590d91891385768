// RUN: not magweld-opt --split-input-file --strip-argument-sizes %s 2>&1 | filecheck %s

// CHECK: error: {{.*}}takes no extent, first tile, last tile
func.func @no_range(%a: memref<?x64xf32>) attributes {tile_graph.kernel, tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  return
}

// -----

// Where rows begin depends on the extent.
// CHECK: error: {{.*}}takes memref<64x?xf32>, whose strides are not constant
func.func @columns(%a: memref<64x?xf32>, %n: index, %lo: index, %hi: index) attributes {tile_graph.kernel, tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  return
}

// -----

// CHECK: error: {{.*}}takes memref<?x?xf32>, whose strides are not constant
func.func @both(%a: memref<?x?xf32>, %n: index, %lo: index, %hi: index) attributes {tile_graph.kernel, tile_graph.runtime = {beside = 1 : i64, extent = 41 : i64, step = 4 : i64}} {
  return
}
