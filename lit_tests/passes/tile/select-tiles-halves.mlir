// Elements of bf16 are counted with two bytes: what is computed in f32 between
// them moves no more.
//
// RUN: magweld-opt --pass-pipeline="builtin.module(form-tile-graph{device=v100},connect-operators,extract-subgraphs,select-tiles,propagate-tiles)" %s | filecheck %s

// CHECK-LABEL: func.func @double(
// CHECK: traffic_after = 4194304 : i64, traffic_before = 4194304 : i64
func.func @double(%x: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {
  %e = tensor.empty() : tensor<1024x1024xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1024x1024xbf16>) outs(%e : tensor<1024x1024xbf16>) {
  ^bb0(%a: bf16, %u: bf16):
    %w = arith.extf %a : bf16 to f32
    %s = arith.addf %w, %w : f32
    %n = arith.truncf %s : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<1024x1024xbf16>
  return %r : tensor<1024x1024xbf16>
}
