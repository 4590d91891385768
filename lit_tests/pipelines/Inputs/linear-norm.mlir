module {
  func.func @main(%arg0: !torch.vtensor<[16,32],f32>, %arg1: !torch.vtensor<[32,64],f32>, %arg2: !torch.vtensor<[64],f32>, %arg3: !torch.vtensor<[64],f32>, %arg4: !torch.vtensor<[64],f32>) -> !torch.vtensor<[16,64],f32> {
    %0 = torch.aten.mm %arg0, %arg1 : !torch.vtensor<[16,32],f32>, !torch.vtensor<[32,64],f32> -> !torch.vtensor<[16,64],f32>
    %int1 = torch.constant.int 1
    %1 = torch.aten.add.Tensor %0, %arg2, %int1 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[64],f32>, !torch.int -> !torch.vtensor<[16,64],f32>
    %2 = torch.aten.relu %1 : !torch.vtensor<[16,64],f32> -> !torch.vtensor<[16,64],f32>
    %int1_0 = torch.constant.int 1
    %3 = torch.prim.ListConstruct %int1_0 : (!torch.int) -> !torch.list<int>
    %false = torch.constant.bool false
    %none = torch.constant.none
    %4 = torch.aten.mean.dim %2, %3, %false, %none : !torch.vtensor<[16,64],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[16],f32>
    %int16 = torch.constant.int 16
    %int1_1 = torch.constant.int 1
    %5 = torch.prim.ListConstruct %int16, %int1_1 : (!torch.int, !torch.int) -> !torch.list<int>
    %6 = torch.aten.view %4, %5 : !torch.vtensor<[16],f32>, !torch.list<int> -> !torch.vtensor<[16,1],f32>
    %int1_2 = torch.constant.int 1
    %7 = torch.aten.sub.Tensor %2, %6, %int1_2 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[16,1],f32>, !torch.int -> !torch.vtensor<[16,64],f32>
    %8 = torch.aten.mul.Tensor %7, %7 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[16,64],f32> -> !torch.vtensor<[16,64],f32>
    %int1_3 = torch.constant.int 1
    %9 = torch.prim.ListConstruct %int1_3 : (!torch.int) -> !torch.list<int>
    %false_4 = torch.constant.bool false
    %none_5 = torch.constant.none
    %10 = torch.aten.mean.dim %8, %9, %false_4, %none_5 : !torch.vtensor<[16,64],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[16],f32>
    %float1.000000e-05 = torch.constant.float 1.000000e-05
    %int1_6 = torch.constant.int 1
    %11 = torch.aten.add.Scalar %10, %float1.000000e-05, %int1_6 : !torch.vtensor<[16],f32>, !torch.float, !torch.int -> !torch.vtensor<[16],f32>
    %12 = torch.aten.rsqrt %11 : !torch.vtensor<[16],f32> -> !torch.vtensor<[16],f32>
    %int16_7 = torch.constant.int 16
    %int1_8 = torch.constant.int 1
    %13 = torch.prim.ListConstruct %int16_7, %int1_8 : (!torch.int, !torch.int) -> !torch.list<int>
    %14 = torch.aten.view %12, %13 : !torch.vtensor<[16],f32>, !torch.list<int> -> !torch.vtensor<[16,1],f32>
    %15 = torch.aten.mul.Tensor %7, %14 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[16,1],f32> -> !torch.vtensor<[16,64],f32>
    %16 = torch.aten.mul.Tensor %15, %arg3 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[64],f32> -> !torch.vtensor<[16,64],f32>
    %int1_9 = torch.constant.int 1
    %17 = torch.aten.add.Tensor %16, %arg4, %int1_9 : !torch.vtensor<[16,64],f32>, !torch.vtensor<[64],f32>, !torch.int -> !torch.vtensor<[16,64],f32>
    return %17 : !torch.vtensor<[16,64],f32>
  }
}
