"""Owns the generation of AMD code objects, linked where ld.lld is installed."""

from __future__ import annotations

from functools import partial

from magweld.codegen.device_llvm import DeviceCode, DeviceMachine, optimize
from magweld.codegen.device_tools import find_lld, run_tool

_TRIPLE = "amdgcn-amd-amdhsa"


def compile_amdgpu(llvm_ir: str, chip: str, parameter_bytes: int = 0) -> DeviceCode:
    """Compile LLVM IR text to an object, and link that if ld.lld is found.

    Args:
        llvm_ir: Text with functions of calling convention `amdgpu_kernel`.
        chip: "gfx942", ...
        parameter_bytes: Bytes of the parameters of a kernel; they are in memory.

    Raises:
        DeviceCodegenError: LLVM or the linker refuses the code.
        UnsupportedError: `device-function`.
    """
    module, machine = optimize(llvm_ir, DeviceMachine(_TRIPLE, chip))
    # Emitting rewrites the module on the way to instructions: the second emission of
    # one module aborts on what the first left in it.
    assembly = partial(machine.emit_assembly, module.clone())
    lld = find_lld()
    if lld is None:
        missing = "no ld.lld on the PATH nor in the package ziglang"
        return DeviceCode(assembly, None, missing)
    relocatable = machine.emit_object(module)
    linked = run_tool([*lld, "-shared", "{input}", "-o", "{output}"], relocatable)
    return DeviceCode(assembly, linked, "")
