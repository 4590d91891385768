// A softmax over columns in upstream's named operations and in its single one.
func.func @main(%x: tensor<49x3xf32>) -> (tensor<49x3xf32>, tensor<49x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<49x3xf32>
  %e1 = tensor.empty() : tensor<3xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<3xf32>) -> tensor<3xf32>
  %max = linalg.reduce {arith.maximumf} ins(%x : tensor<49x3xf32>)
    outs(%low : tensor<3xf32>) dimensions = [0]
  %wide = linalg.broadcast ins(%max : tensor<3xf32>) outs(%e : tensor<49x3xf32>)
    dimensions = [0]
  %sub = linalg.sub ins(%x, %wide : tensor<49x3xf32>, tensor<49x3xf32>)
    outs(%e : tensor<49x3xf32>) -> tensor<49x3xf32>
  %exp = linalg.map {math.exp} ins(%sub : tensor<49x3xf32>) outs(%e : tensor<49x3xf32>)
  %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.reduce {arith.addf} ins(%exp : tensor<49x3xf32>)
    outs(%none : tensor<3xf32>) dimensions = [0]
  %all = linalg.broadcast ins(%sum : tensor<3xf32>) outs(%e : tensor<49x3xf32>)
    dimensions = [0]
  %div = linalg.div ins(%exp, %all : tensor<49x3xf32>, tensor<49x3xf32>)
    outs(%e : tensor<49x3xf32>) -> tensor<49x3xf32>
  return %div, %exp : tensor<49x3xf32>, tensor<49x3xf32>
}
