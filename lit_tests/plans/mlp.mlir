// mlp: thirteen operators.
// At least 555823872 bytes move: arguments and results.
// Written by `python benchmarks/device_plans.py --write`.
//
// RUN: magweld-opt --target=nvvm:sm_80@v100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=V100 %s
// RUN: magweld-opt --target=nvvm:sm_90a@h100 --compile-from=linalg --compile-to=scheduled %s | filecheck --check-prefix=H100 %s
//
// V100-LABEL: func.func @mlp(
// V100: }) {copy_stages = 2 : i64, footprint = 65536 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.0110[0-9]*}} : f64{{.*}}seconds_apart = {{0\.0241[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[96, 3]>, traffic_after = 555823872 : i64, traffic_before = 13296022272 : i64
// V100-NOT: "tile_graph.subgraph"
//
// H100-LABEL: func.func @mlp(
// H100: }) {copy_stages = 2 : i64, footprint = 147456 : i64{{.*}}level = "shared"{{.*}}predicted_seconds = {{0\.00261[0-9]*}} : f64{{.*}}seconds_apart = {{0\.00628[0-9]*}} : f64{{.*}}tile = #tile_graph.tile<[256, 3]>, traffic_after = 555823872 : i64, traffic_before = 13296022272 : i64
// H100-NOT: "tile_graph.subgraph"

#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @mlp(%arg0: tensor<2073600x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>, %arg3: tensor<64x64xf32>, %arg4: tensor<64x64xf32>, %arg5: tensor<64x64xf32>, %arg6: tensor<64x64xf32>, %arg7: tensor<3x64xf32>) -> tensor<2073600x3xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x64xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2073600x64xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %transposed_0 = linalg.transpose ins(%arg2 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %5 = linalg.matmul ins(%4, %transposed_0 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %transposed_1 = linalg.transpose ins(%arg3 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %7 = linalg.matmul ins(%6, %transposed_1 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %transposed_2 = linalg.transpose ins(%arg4 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %9 = linalg.matmul ins(%8, %transposed_2 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %transposed_3 = linalg.transpose ins(%arg5 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %11 = linalg.matmul ins(%10, %transposed_3 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %transposed_4 = linalg.transpose ins(%arg6 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) permutation = [1, 0] 
    %13 = linalg.matmul ins(%12, %transposed_4 : tensor<2073600x64xf32>, tensor<64x64xf32>) outs(%2 : tensor<2073600x64xf32>) -> tensor<2073600x64xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<2073600x64xf32>) outs(%1 : tensor<2073600x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.cmpf olt, %in, %cst : f32
      %20 = arith.select %19, %cst, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2073600x64xf32>
    %15 = tensor.empty() : tensor<64x3xf32>
    %transposed_5 = linalg.transpose ins(%arg7 : tensor<3x64xf32>) outs(%15 : tensor<64x3xf32>) permutation = [1, 0] 
    %16 = tensor.empty() : tensor<2073600x3xf32>
    %17 = linalg.fill ins(%cst : f32) outs(%16 : tensor<2073600x3xf32>) -> tensor<2073600x3xf32>
    %18 = linalg.matmul ins(%14, %transposed_5 : tensor<2073600x64xf32>, tensor<64x3xf32>) outs(%17 : tensor<2073600x3xf32>) -> tensor<2073600x3xf32>
    return %18 : tensor<2073600x3xf32>
  }
}
