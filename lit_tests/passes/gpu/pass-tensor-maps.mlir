// RUN: magweld-opt --pass-tensor-maps %s | filecheck %s

module attributes {gpu.container_module} {
  func.func @kernel(%x: memref<64x64xbf16>, %y: memref<64x64xbf16>, %map: !llvm.ptr)
      attributes {tile_graph.kernel, magweld.tensor_maps = [{argument = 0 : i64, box = array<i64: 64, 64>, swizzle = 128 : i64}]} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%map : !llvm.ptr, %y : memref<64x64xbf16>)
    return
  }
  func.func @plain(%x: memref<64x64xbf16>, %p: !llvm.ptr) attributes {tile_graph.kernel} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64x64xbf16>, %p : !llvm.ptr)
    return
  }
  gpu.module @device {
    // The map is the first parameter of this launch; pointers stay as they are.
    // CHECK: llvm.func @k(%{{.+}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{.+}}: !llvm.ptr {llvm.noalias})
    llvm.func @k(%map: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
    // CHECK: llvm.func @other(%{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr)
    llvm.func @other(%x: !llvm.ptr, %p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
