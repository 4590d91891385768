"""Owns pass-tensor-maps: kernels take tensor maps by value, as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import gpu, ir
from magweld.passes.gpu.pointer_table import argument_numbers
from magweld.passes.gpu.structure import device_functions
from magweld.passes.gpu.tensor_maps import PARAMETER, maps_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of

_ATTRIBUTES = "arg_attrs"


@dataclass(frozen=True)
class PassTensorMaps(Pass):
    """Let kernels take the tensor maps of their launches by value.

        gpu.launch_func @k::@k ... args(%a : memref<64x64xbf16>, %map : !llvm.ptr)
        llvm.func @k(%a: !llvm.ptr, %map: !llvm.ptr) attributes {nvvm.kernel}
    =>
        llvm.func @k(%a: !llvm.ptr, %map: !llvm.ptr {llvm.align = 64 : i64,
            llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})

    The map is among the parameters of the launch, which are constant: nothing copies
    it, and the tensor memory accelerator reads it there.
    """

    name: ClassVar[str] = "pass-tensor-maps"

    def run(self, module: Any) -> None:
        """Annotate the kernels of all launches."""
        kernels = device_functions(module)
        for launch in operations_of(module, gpu.LaunchFuncOp):
            maps = {one.number for one in maps_of(launch.operation.parent.opview)}
            if not maps:
                continue
            kernel = kernels[tuple(ir.SymbolRefAttr(launch.kernel).value)]
            numbers = argument_numbers(launch)
            _annotate(kernel, [place for place, n in enumerate(numbers) if n in maps])


def _annotate(kernel: Any, places: list[int]) -> None:
    attributes = kernel.operation.attributes
    count = len(kernel.operation.regions[0].blocks[0].arguments)
    known = [ir.DictAttr.get({})] * count
    if _ATTRIBUTES in attributes:
        known = [ir.DictAttr(one) for one in ir.ArrayAttr(attributes[_ATTRIBUTES])]
    for place in places:
        known[place] = ir.DictAttr(ir.Attribute.parse(PARAMETER))
    attributes[_ATTRIBUTES] = ir.ArrayAttr.get(known)
