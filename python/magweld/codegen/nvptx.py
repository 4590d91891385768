"""Owns the generation of PTX, and of cubins where ptxas is installed."""

from __future__ import annotations

from magweld.codegen.device_llvm import DeviceCode, DeviceMachine, optimize
from magweld.codegen.device_tools import find_ptxas, run_tool

_TRIPLE = "nvptx64-nvidia-cuda"
# PTX ISA, "Kernel Function Parameters": 4352 bytes, and 32764 from version 8.1 on.
_PARAMETER_BYTES = 4352
_FOR_LARGE_PARAMETERS = "+ptx81"


def compile_nvptx(llvm_ir: str, chip: str, parameter_bytes: int = 0) -> DeviceCode:
    """Compile LLVM IR text to PTX, and that to a cubin if ptxas is found.

    Args:
        llvm_ir: Text with functions of calling convention `ptx_kernel`.
        chip: "sm_80", "sm_90a", ...
        parameter_bytes: Bytes of the parameters of a kernel.

    Raises:
        DeviceCodegenError: LLVM or ptxas refuses the code.
        UnsupportedError: `device-function`.
    """
    features = _FOR_LARGE_PARAMETERS if parameter_bytes > _PARAMETER_BYTES else ""
    module, machine = optimize(llvm_ir, DeviceMachine(_TRIPLE, chip, features))
    ptx = machine.emit_assembly(module)
    ptxas = find_ptxas()
    if ptxas is None:
        missing = "no ptxas on the PATH nor in the package nvidia-cuda-nvcc"
        return DeviceCode(lambda: ptx, None, missing)
    cubin = run_tool(
        [*ptxas, f"--gpu-name={chip}", "{input}", "--output-file", "{output}"],
        ptx.encode(),
    )
    return DeviceCode(lambda: ptx, cubin, "")
