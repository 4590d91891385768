// RUN: not magweld-opt %s --outline-control 2>&1 | filecheck %s

// CHECK: expected a truth value to be the element of a tensor
func.func @computed(%x: tensor<2xf32>, %n: i64) -> tensor<2xf32> {
  %zero = arith.constant 0 : i64
  %t = arith.cmpi eq, %n, %zero : i64
  %e = tensor.empty() : tensor<2xf32>
  %r = scf.if %t -> tensor<2xf32> {
    %m = linalg.exp ins(%x : tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    scf.yield %m : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
