// RUN: magweld-opt --join-launches --split-input-file %s | filecheck %s

// The first kernel has three blocks for each of two members, the second one four blocks.
// Blocks below six are of the first kernel, whose pointers are the first four of the table;
// the others find theirs behind these. The launch has the larger shared memory.
//
// CHECK-LABEL: func.func private @one(
// CHECK:         %[[BLOCKS:.+]] = arith.constant 10 : index
// CHECK:         %[[SHARED:.+]] = arith.constant 256 : i32
// CHECK:         gpu.launch_func @device_one::@joint_0 blocks in (%[[BLOCKS]], %{{.+}}, %{{.+}}) threads
// CHECK-SAME:      dynamic_shared_memory_size %[[SHARED]]
// CHECK-SAME:      magweld.launch_parts = [{arguments = array<i64: 0, 1>, members = 2 : i64}, {arguments = array<i64: 1, 0>, members = 1 : i64}]
// CHECK-NOT:   func.func
// CHECK:       gpu.module @device_one
// CHECK:         llvm.mlir.global external @shared()
// CHECK:         llvm.func internal @one(%{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr {llvm.noalias}, %[[B:.+]]: i32) attributes {always_inline}
// CHECK-NOT:       ctaid
// CHECK:           %[[ZERO:.+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK:           llvm.add %[[B]], %[[ZERO]]
// CHECK:         llvm.func @joint_0(%[[T:.+]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<6 x ptr>})
// CHECK-SAME:      gpu.known_grid_size = array<i32: 10, 1, 1>, nvvm.kernel}
// CHECK:           %[[X:.+]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK:           %[[SIX:.+]] = llvm.mlir.constant(6 : i32)
// CHECK:           %[[IS:.+]] = llvm.icmp "ult" %[[X]], %[[SIX]]
// CHECK:           llvm.cond_br %[[IS]], ^[[ONE:.+]], ^[[TWO:.+]]
// CHECK:         ^[[ONE]]:
// CHECK:           %[[MEMBER:.+]] = llvm.udiv %[[X]], %{{.+}}
// CHECK:           %[[OWN:.+]] = llvm.urem %[[X]], %{{.+}}
// CHECK:           %[[M:.+]] = llvm.zext %[[MEMBER]]
// CHECK:           llvm.getelementptr %[[T]][%[[M]], 0] : {{.+}}, !llvm.array<2 x ptr>
// CHECK:           llvm.call @one(%{{.+}}, %{{.+}}, %[[OWN]])
// CHECK:           llvm.return
// CHECK:         ^[[TWO]]:
// CHECK:           %[[REST:.+]] = llvm.sub %[[X]], %{{.+}}
// CHECK:           %[[OWNS:.+]] = llvm.getelementptr %[[T]][4]
// CHECK:           llvm.getelementptr %[[OWNS]][0, 0] : {{.+}}, !llvm.array<2 x ptr>
// CHECK:           llvm.call @two(%{{.+}}, %{{.+}}, %[[REST]])
// CHECK:         llvm.func internal @two(
// CHECK-NOT:   gpu.module
module attributes {gpu.container_module} {
  func.func private @one(%x: memref<8xf32>, %o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.joint_launch = "joint_0", magweld.members = 2 : i64} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @device_one::@one blocks in (%c3, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<8xf32>, %o : memref<8xf32>)
    return
  }
  func.func private @two(%x: memref<8xf32>, %o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %bytes = arith.constant 256 : i32
    gpu.launch_func @device_two::@two blocks in (%c4, %c1, %c1) threads in (%c32, %c1, %c1) dynamic_shared_memory_size %bytes args(%o : memref<8xf32>, %x : memref<8xf32>)
    return
  }
  gpu.module @device_one {
    llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.func @one(%x: !llvm.ptr {llvm.noalias}, %o: !llvm.ptr {llvm.noalias})
        attributes {gpu.kernel, gpu.known_grid_size = array<i32: 3, 1, 1>, nvvm.kernel} {
      %i = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 3> : i32
      %j = nvvm.read.ptx.sreg.ctaid.y range <i32, 0, 1> : i32
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %k = llvm.add %i, %j : i32
      %p = llvm.getelementptr %x[%k] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %q = llvm.getelementptr %o[%k] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %v, %q : f32, !llvm.ptr
      llvm.return
    }
  }
  gpu.module @device_two {
    llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.func @two(%o: !llvm.ptr, %x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

// AMD's kernels likewise. Kernels that are not to be joined stay as they are.
//
// CHECK-LABEL: func.func private @one(
// CHECK:         gpu.launch_func @device_one::@joint_1
// CHECK:       func.func private @alone(
// CHECK:         gpu.launch_func @device_alone::@alone
// CHECK:         llvm.func @joint_1(%{{.+}}: !llvm.ptr<4> {llvm.align = 8 : i64, llvm.byref = !llvm.array<2 x ptr>})
// CHECK-SAME:      rocdl.kernel}
// CHECK:           rocdl.workgroup.id.x
// CHECK:         llvm.func @alone(%{{.+}}: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel}
module attributes {gpu.container_module} {
  func.func private @one(%o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.joint_launch = "joint_1"} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device_one::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  func.func private @two(%o: memref<8xf32>)
      attributes {tile_graph.kernel, magweld.joint_launch = "joint_1"} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device_two::@two blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  func.func private @alone(%o: memref<8xf32>) attributes {tile_graph.kernel} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device_alone::@alone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @device_one {
    llvm.func @one(%o: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
  gpu.module @device_two {
    llvm.func @two(%o: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
  gpu.module @device_alone {
    llvm.func @alone(%o: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
}
