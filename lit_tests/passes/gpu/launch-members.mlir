// RUN: magweld-opt --launch-members --split-input-file %s | filecheck %s

// A row of blocks for each of five members, which loads the two pointers of its row. The
// kernel itself takes its row for the first one.
//
// CHECK-LABEL: func.func private @kernel(
// CHECK:         %[[ROWS:.+]] = arith.constant 5 : index
// CHECK:         gpu.launch_func @device::@kernel_members blocks in (%{{.+}}, %[[ROWS]], %{{.+}}) threads
// CHECK-SAME:      args(%{{.+}} : memref<8xf32>, %{{.+}} : memref<8xf32>)
// CHECK:         llvm.func internal @kernel(%{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr {llvm.noalias})
// CHECK-SAME:      attributes {always_inline} {
// CHECK:           nvvm.read.ptx.sreg.ctaid.x
// CHECK-NOT:       nvvm.read.ptx.sreg.ctaid.y
// CHECK:           %[[FIRST:.+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK:           llvm.add %{{.+}}, %[[FIRST]]
// CHECK:         llvm.func @kernel_members(%[[T:.+]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<10 x ptr>})
// CHECK-SAME:      gpu.known_grid_size = array<i32: 4, 5, 1>, nvvm.kernel}
// CHECK:           %[[Y:.+]] = nvvm.read.ptx.sreg.ctaid.y : i32
// CHECK:           %[[M:.+]] = llvm.zext %[[Y]]
// CHECK:           %[[P0:.+]] = llvm.getelementptr %[[T]][%[[M]], 0] : {{.+}}, !llvm.array<2 x ptr>
// CHECK:           %[[A0:.+]] = llvm.load %[[P0]] invariant {{.+}} -> !llvm.ptr<1>
// CHECK:           %[[G0:.+]] = llvm.addrspacecast %[[A0]]
// CHECK:           %[[P1:.+]] = llvm.getelementptr %[[T]][%[[M]], 1]
// CHECK:           %[[A1:.+]] = llvm.load %[[P1]]
// CHECK:           %[[G1:.+]] = llvm.addrspacecast %[[A1]]
// CHECK:           llvm.call @kernel(%[[G0]], %[[G1]])
module attributes {gpu.container_module} {
  func.func private @kernel(%x: memref<8xf32>, %o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.members = 5 : i64} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @device::@kernel blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>, %o : memref<8xf32>)
    return
  }
  gpu.module @device {
    llvm.func @kernel(%x: !llvm.ptr {llvm.noalias}, %o: !llvm.ptr {llvm.noalias})
        attributes {gpu.kernel, gpu.known_grid_size = array<i32: 4, 1, 1>, nvvm.kernel} {
      %i = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 4> : i32
      %j = nvvm.read.ptx.sreg.ctaid.y range <i32, 0, 1> : i32
      %k = llvm.add %i, %j : i32
      %p = llvm.getelementptr %x[%k] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %q = llvm.getelementptr %o[%k] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %v, %q : f32, !llvm.ptr
      llvm.return
    }
  }
}

// -----

// AMD's kernels find the table in the memory of their arguments.
//
// CHECK-LABEL: func.func private @kernel(
// CHECK:         llvm.func @kernel_members(%[[T:.+]]: !llvm.ptr<4> {llvm.align = 8 : i64, llvm.byref = !llvm.array<2 x ptr>})
// CHECK-SAME:      rocdl.kernel}
// CHECK:           rocdl.workgroup.id.y
// CHECK:           llvm.getelementptr %[[T]][%{{.+}}, 0] : {{.+}}, !llvm.array<1 x ptr>
module attributes {gpu.container_module} {
  func.func private @kernel(%o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.members = 2 : i64} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @device {
    llvm.func @kernel(%o: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
}

// -----

// A kernel of one member stays as it is.
//
// CHECK-LABEL: func.func private @alone(
// CHECK:         gpu.launch_func @device::@alone blocks
// CHECK:         llvm.func @alone(%{{.+}}: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel}
// CHECK-NOT:     _members
module attributes {gpu.container_module} {
  func.func private @alone(%o: memref<8xf32>) attributes {tile_graph.kernel} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@alone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @device {
    llvm.func @alone(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
