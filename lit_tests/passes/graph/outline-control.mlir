// RUN: magweld-opt %s --outline-control --split-input-file | filecheck %s

// A branch in a loop. What both arms read is handed over, constants are made anew, and
// the function that holds the iteration is inlined.
//
// CHECK-LABEL: func.func @nested(
// CHECK-SAME:      %[[X:.+]]: tensor<4xf32>, %[[T:.+]]: tensor<i1>)
// CHECK-NEXT:    %[[R:.+]] = call @while_0(%[[T]], %[[X]], %[[X]])
// CHECK-NEXT:    return %[[R]]
// CHECK:       func.func private @then_0(%[[A:.+]]: tensor<4xf32>, %{{.+}}: tensor<4xf32>)
// CHECK:         %[[C:.+]] = arith.constant dense<5.0
// CHECK:         %[[M:.+]] = linalg.mul ins(%[[A]], %[[C]] :
// CHECK-NEXT:    return %[[M]]
// CHECK:       func.func private @else_0(%[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf32>)
// CHECK:         %[[S:.+]] = linalg.add ins(%[[A]], %[[B]] :
// CHECK-NEXT:    return %[[S]]
// CHECK:       func.func private @if_0(tensor<i1>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:    magweld.if = {on_false = @else_0, on_true = @then_0}
// CHECK:       func.func private @step_0(%[[H:.+]]: tensor<4xf32>, %[[I:.+]]: tensor<4xf32>)
// CHECK-SAME:    -> (tensor<4xf32>, tensor<i1>)
// CHECK:         %[[P:.+]] = linalg.generic
// CHECK-NOT:     tensor.extract
// CHECK:         %[[N:.+]] = call @if_0(%[[P]], %[[H]], %[[I]])
// CHECK-NEXT:    return %[[N]], %[[P]]
// CHECK:       func.func private @while_0(tensor<i1>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:    magweld.while = {function = @step_0}
func.func private @iteration(%h: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i1>) {
  %e = tensor.empty() : tensor<4xf32>
  %half = arith.constant dense<0.5> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<i1>
  %first = tensor.extract_slice %h[0] [1] [1] : tensor<4xf32> to tensor<f32>
  %p = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%first : tensor<f32>) outs(%none : tensor<i1>) {
  ^bb0(%in: f32, %out: i1):
    %0 = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %0 : i1
  } -> tensor<i1>
  %t = tensor.extract %p[] : tensor<i1>
  %r = scf.if %t -> tensor<4xf32> {
    %m = linalg.mul ins(%h, %half : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  } else {
    %s = linalg.add ins(%h, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r, %p : tensor<4xf32>, tensor<i1>
}
func.func @nested(%x: tensor<4xf32>, %test: tensor<i1>) -> tensor<4xf32> {
  %t = tensor.extract %test[] : tensor<i1>
  %r = scf.while (%p = %t, %h = %x) : (i1, tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%p) %h : tensor<4xf32>
  } do {
  ^bb0(%h: tensor<4xf32>):
    %n:2 = func.call @iteration(%h, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i1>)
    %again = tensor.extract %n#1[] : tensor<i1>
    scf.yield %again, %n#0 : i1, tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A loop that hands its carried values on in another order, and a value from outside.
//
// CHECK-LABEL: func.func @swapped(
// CHECK-SAME:      %[[X:.+]]: tensor<2xf32>, %[[Y:.+]]: tensor<2xf32>, %[[Z:.+]]: tensor<2xf32>, %[[T:.+]]: tensor<i1>)
// CHECK-NEXT:    %[[R:.+]]:2 = call @while_0(%[[T]], %[[X]], %[[Y]], %[[Z]])
// CHECK-NEXT:    return %[[R]]#1, %[[R]]#0, %[[Z]]
// CHECK:       func.func private @step_0(%[[A:.+]]: tensor<2xf32>, %[[B:.+]]: tensor<2xf32>, %[[C:.+]]: tensor<2xf32>)
// CHECK:         %[[S:.+]] = linalg.add ins(%[[B]], %[[C]] :
// CHECK-NEXT:    %[[P:.+]] = call @test(%[[S]])
// CHECK-NEXT:    return %[[S]], %[[A]], %[[P]]
func.func private @test(tensor<2xf32>) -> tensor<i1>
func.func @swapped(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>, %test: tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %t = tensor.extract %test[] : tensor<i1>
  %r:3 = scf.while (%p = %t, %a = %x, %b = %y) : (i1, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
    scf.condition(%p) %b, %a, %z : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  } do {
  ^bb0(%b: tensor<2xf32>, %a: tensor<2xf32>, %c: tensor<2xf32>):
    %e = tensor.empty() : tensor<2xf32>
    %s = linalg.add ins(%b, %c : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %n = func.call @test(%s) : (tensor<2xf32>) -> tensor<i1>
    %again = tensor.extract %n[] : tensor<i1>
    scf.yield %again, %s, %a : i1, tensor<2xf32>, tensor<2xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A choice between tensors that are there is a branch whose arms return what they get.
//
// CHECK-LABEL: func.func @choice(
// CHECK-SAME:      %[[X:.+]]: tensor<2xf32>, %[[Y:.+]]: tensor<2xf32>, %[[T:.+]]: tensor<i1>)
// CHECK-NEXT:    call @if_0(%[[T]], %[[X]], %[[Y]])
// CHECK:       func.func private @then_0(%[[A:.+]]: tensor<2xf32>, %{{.+}}: tensor<2xf32>)
// CHECK-NEXT:    return %[[A]]
// CHECK:       func.func private @else_0(%{{.+}}: tensor<2xf32>, %[[B:.+]]: tensor<2xf32>)
// CHECK-NEXT:    return %[[B]]
func.func @choice(%x: tensor<2xf32>, %y: tensor<2xf32>, %test: tensor<i1>) -> tensor<2xf32> {
  %t = tensor.extract %test[] : tensor<i1>
  %r = arith.select %t, %x, %y : tensor<2xf32>
  return %r : tensor<2xf32>
}
