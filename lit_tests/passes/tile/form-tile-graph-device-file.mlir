// A device of a file, with the memory of the machine around it as outermost level.
//
// RUN: magweld-opt --form-tile-graph=device=%S/Inputs/toy.toml#toy+host %s | filecheck %s
//
// What is no device is told with what it may be.
// RUN: not magweld-opt --form-tile-graph=device=%S/Inputs/toy.toml#lorry %s 2>&1 \
// RUN:   | filecheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown device 'lorry' [unknown-device]; hint: known devices: flat, toy

// CHECK-LABEL: func.func @main
// CHECK-SAME: #tile_graph.device<"toy+host", [
// CHECK-SAME: #tile_graph.level<"host", 0 : i64, 0 : i64, 8.000000e+00 : f64, 128 : i64, 1 : i64, "explicit", 4.000000e+00 : f64, 0 : i64>
// CHECK-SAME: #tile_graph.level<"global", 1 : i64, 1048576 : i64
// CHECK-SAME: #tile_graph.instruction<"mma", [16, 8, 16], "f16", "f32", 8.000000e+02 : f64>
// CHECK: "tile_graph.operator"
// CHECK: "tile_graph.connect"(%{{.*}}) {level = "host"}
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.exp ins(%a : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>)
      -> tensor<8x4xf32>
  %1 = linalg.abs ins(%0 : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>)
      -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
