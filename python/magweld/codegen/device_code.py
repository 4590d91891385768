"""Owns the compilation of LLVM IR text to code for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from magweld.codegen.amdgpu import compile_amdgpu
from magweld.codegen.device_llvm import DeviceCode
from magweld.codegen.nvptx import compile_nvptx
from magweld.diagnostics import UnsupportedError


@dataclass(frozen=True)
class _Chip:
    compile: Callable[[str, str, int], DeviceCode]
    name: str


# LLVM aborts the process on a processor that it does not know well enough, so only
# chips that the tests compile for are let through.
_CHIPS = {
    "nvvm:sm_80": _Chip(compile_nvptx, "sm_80"),
    "nvvm:sm_90a": _Chip(compile_nvptx, "sm_90a"),
    "rocdl:gfx90a": _Chip(compile_amdgpu, "gfx90a"),
    "rocdl:gfx942": _Chip(compile_amdgpu, "gfx942"),
}


def compile_device_code(
    llvm_ir: str, target: str, parameter_bytes: int = 0
) -> DeviceCode:
    """Compile one GPU module.

    Args:
        llvm_ir: LLVM IR text that llvmlite reads, with kernels for the target.
        target: "nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx90a" or "rocdl:gfx942".
        parameter_bytes: Bytes of the parameters of a kernel.

    Raises:
        UnsupportedError: `unknown-gpu-target`, or `device-function` if the code calls
            a function that nobody defines.
        DeviceCodegenError: LLVM or a tool refuses the code.
    """
    chip = _CHIPS.get(target)
    if chip is None:
        raise UnsupportedError(
            "unknown-gpu-target",
            f"no GPU code is generated for '{target}'",
            hint=f"known targets: {', '.join(_CHIPS)}",
        )
    return chip.compile(llvm_ir, chip.name, parameter_bytes)
