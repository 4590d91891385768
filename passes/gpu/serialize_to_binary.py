"""Owns serialize-to-binary: lowered GPU modules become machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import gpu, ir
from magweld.codegen.device_code import compile_device_code
from magweld.codegen.llvm_text import translate_to_llvm_ir
from magweld.diagnostics import UnsupportedError
from magweld.passes.gpu.join_launches import PARTS
from magweld.passes.gpu.pointer_table import (
    POINTER_BYTES,
    argument_numbers,
    launch_parameters,
    members_of,
)
from magweld.passes.gpu.structure import constant_of
from magweld.passes.gpu.tensor_maps import MAPPED, mapped_parameters, tensors_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, operations_of

LAUNCH = "magweld.launch"


@dataclass(frozen=True)
class SerializeToBinary(Pass):
    """Compile every `gpu.module` in the LLVM dialect to a `gpu.binary`.

    Its objects are PTX (format `assembly`) and, where ptxas is installed, a cubin
    (format `bin`) for NVIDIA, or a linked code object (format `bin`) for AMD. What a
    launcher needs stands beside them in `magweld.launch`: symbol, grid, block, bytes
    of dynamic shared memory, the numbers of the arguments of the host function whose
    bare pointers are the kernel's parameters, in the order of these, and how many
    members the launch has: the parameter of several is one table of their pointers.
    A launch of kernels side by side has `parts` with these two, in the order of the
    table. `tensor_maps` says which parameters are maps of their tensors, and no
    pointers.
    """

    name: ClassVar[str] = "serialize-to-binary"

    target: Annotated[str, "nvvm:sm_80, rocdl:gfx942, ..."] = "nvvm:sm_80"

    def run(self, module: Any) -> None:
        """Compile all GPU modules of the module."""
        launches = operations_of(module, gpu.LaunchFuncOp)
        for device_module in operations_of(module, gpu.GPUModuleOp):
            with device_module.location:
                self._serialize(device_module, launches)

    def _serialize(self, device_module: Any, launches: list[Any]) -> None:
        name = device_module.sym_name
        own = [op for op in launches if _module_of(op) == name.value]
        if len(own) != 1:
            raise located_error(device_module, f"expected one launch, got {len(own)}")
        text = translate_to_llvm_ir(device_module)
        geometry = _geometry(own[0])
        code = compile_device_code(text, self.target, _parameter_bytes(geometry))
        objects = []
        if self.target.startswith("nvvm:"):
            objects.append(self._object(code.assembly.encode(), "Assembly"))
        if code.binary is not None:
            objects.append(self._object(code.binary, "Binary"))
        if not objects:
            raise UnsupportedError(
                "no-linker",
                f"no binary can be made for {self.target}: {code.missing}",
                hint="install magweld[rocm]",
            )
        with ir.InsertionPoint(device_module):
            ir.Operation.create(
                "gpu.binary",
                attributes={
                    "sym_name": name,
                    "objects": ir.ArrayAttr.get(objects),
                    # Printing a gpu.binary without a handler crashes.
                    "offloadingHandler": ir.Attribute.parse("#gpu.select_object"),
                    LAUNCH: geometry,
                },
            )
        device_module.operation.erase()

    def _object(self, data: bytes, kind: str) -> ir.Attribute:
        family, _, chip = self.target.partition(":")
        target = ir.Attribute.parse(f'#{family}.target<O = 3, chip = "{chip}">')
        return gpu.ObjectAttr.get(target, gpu.CompilationTarget[kind], data)


def _module_of(launch: Any) -> str:
    symbols: list[str] = ir.SymbolRefAttr(launch.kernel).value
    return symbols[0]


def _geometry(launch: Any) -> ir.DictAttr:
    """Describe a launch by constants.

    Raises:
        PassError: Something of it is computed; located at the launch.
    """
    grid = [launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ]
    block = [launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ]
    shared = launch.dynamicSharedMemorySize
    i64 = ir.IntegerType.get_signless(64)
    shared_bytes = 0 if shared is None else constant_of(shared, launch)
    symbols = ir.SymbolRefAttr(launch.kernel).value
    return ir.DictAttr.get(
        {
            "block": _sizes(block, launch),
            "dynamic_shared_bytes": ir.IntegerAttr.get(i64, shared_bytes),
            "grid": _sizes(grid, launch),
            "symbol": ir.StringAttr.get(symbols[-1]),
            **_parameters(launch),
        }
    )


def _parameters(launch: Any) -> dict[str, ir.Attribute]:
    """Describe what a launch takes; those of kernels side by side, part by part."""
    if PARTS in launch.attributes:
        return {"parts": launch.attributes[PARTS]}
    numbers, function = argument_numbers(launch), launch.operation.parent.opview
    maps = mapped_parameters(function, numbers)
    known = launch_parameters(tensors_of(function, numbers), members_of(function))
    return {**known, MAPPED: ir.ArrayAttr.get(maps)} if maps else known


def _parameter_bytes(geometry: Any) -> int:
    parts = ir.ArrayAttr(geometry["parts"]) if "parts" in geometry else [geometry]
    return POINTER_BYTES * sum(
        len(ir.DenseI64ArrayAttr(part["arguments"]))
        * int(ir.IntegerAttr(part["members"]).value)
        for part in map(ir.DictAttr, parts)
    )


def _sizes(values: list[ir.Value], launch: Any) -> ir.DenseI64ArrayAttr:
    return ir.DenseI64ArrayAttr.get([constant_of(value, launch) for value in values])
