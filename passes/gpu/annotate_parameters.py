"""Owns annotate-parameters: what LLVM may assume of a GPU kernel's pointers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import gpu, ir
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class AnnotateParameters(Pass):
    """Mark the memrefs that GPU kernels take as not overlapping.

    A destination never overlaps an operand or another destination: what was loaded
    stays valid over stores, and inputs may go through read-only caches.
    """

    name: ClassVar[str] = "annotate-parameters"

    def run(self, module: Any) -> None:
        """Annotate the kernels of all GPU modules."""
        for function in operations_of(module, gpu.GPUFuncOp):
            if not function.kernel:
                continue
            attributes = [
                ir.DictAttr.get(_attributes(argument.type))
                for argument in function.entry_block.arguments
            ]
            function.arg_attrs = ir.ArrayAttr.get(attributes)


def _attributes(type_: ir.Type) -> dict[str, ir.Attribute]:
    if not isinstance(type_, ir.MemRefType):
        return {}
    return {"llvm.noalias": ir.UnitAttr.get()}
