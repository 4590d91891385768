// RUN: magweld-opt --form-tile-graph='device=v100' --connect-operators='batch=true' --split-input-file %s \
// RUN:   | filecheck %s

#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// Members of a launch read the same tensor: it comes from memory once for all, so they
// stay apart from the concatenation.

// CHECK-LABEL:   func.func @all_read_one_tensor(
// CHECK-COUNT-4: {level = "global", refused = "slower: {{.+}}"} : (tensor<512x64xf32>)
// CHECK:         return
func.func @all_read_one_tensor(%x: tensor<512x64xf32>, %w0: tensor<64xf32>, %w1: tensor<64xf32>, %w2: tensor<64xf32>, %w3: tensor<64xf32>) -> tensor<512x256xf32> {
  %zero = arith.constant 0.0 : f32
  %z = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<512xf32>) -> tensor<512xf32>
  %e = tensor.empty() : tensor<512x64xf32>
  %s0 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w0 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r0 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s0 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s1 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w1 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r1 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s1 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s2 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w2 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r2 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s2 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s3 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w3 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r3 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s3 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %c = tensor.concat dim(1) %r0, %r1, %r2, %r3 : (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x256xf32>
  return %c : tensor<512x256xf32>
}

// -----

#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// One of them reads another tensor: none is read by all, and one kernel is faster.

// CHECK-LABEL:   func.func @one_reads_another_tensor(
// CHECK-COUNT-4: {level = "shared"} : (tensor<512x64xf32>)
// CHECK:         return
func.func @one_reads_another_tensor(%x: tensor<512x64xf32>, %y: tensor<512x64xf32>, %w0: tensor<64xf32>, %w1: tensor<64xf32>, %w2: tensor<64xf32>, %w3: tensor<64xf32>) -> tensor<512x256xf32> {
  %zero = arith.constant 0.0 : f32
  %z = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<512xf32>) -> tensor<512xf32>
  %e = tensor.empty() : tensor<512x64xf32>
  %s0 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w0 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r0 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s0 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s1 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w1 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r1 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s1 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s2 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x, %w2 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r2 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%x, %s2 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %s3 = linalg.generic {indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}
      ins(%y, %w3 : tensor<512x64xf32>, tensor<64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  } -> tensor<512xf32>
  %r3 = linalg.generic {indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}
      ins(%y, %s3 : tensor<512x64xf32>, tensor<512xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  %c = tensor.concat dim(1) %r0, %r1, %r2, %r3 : (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x256xf32>
  return %c : tensor<512x256xf32>
}
