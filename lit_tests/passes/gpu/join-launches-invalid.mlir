// RUN: magweld-opt --join-launches --split-input-file --verify-diagnostics %s

module attributes {gpu.container_module} {
  func.func private @one(%o: memref<8xf32>) attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @a::@one blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  func.func private @two(%o: memref<8xf32>) attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    // expected-error @+1 {{expected 32 threads of a block}}
    gpu.launch_func @b::@two blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @a {
    llvm.func @one(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
  gpu.module @b {
    llvm.func @two(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func private @one(%o: memref<8xf32>) attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @a::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @a {
    llvm.func @one(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      // expected-error @+1 {{expected a block to read its number alone}}
      %n = nvvm.read.ptx.sreg.nctaid.x : i32
      %p = llvm.getelementptr %o[%n] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func private @one(%o: memref<8xf32>) attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @a::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  func.func private @two(%o: memref<8xf32>) attributes {tile_graph.kernel, magweld.joint_launch = "joint_0"} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @b::@two blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<8xf32>)
    return
  }
  gpu.module @a {
    llvm.func @helper() {
      llvm.return
    }
    llvm.func @one(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
  gpu.module @b {
    // expected-error @+1 {{expected one definition of @helper}}
    llvm.func @helper() {
      llvm.return
    }
    llvm.func @two(%o: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
