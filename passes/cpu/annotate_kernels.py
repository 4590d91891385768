"""Owns annotate-kernels: the promises about a kernel that LLVM may build on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import arith, func, ir
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of

_CONTRACTIBLE = (arith.AddFOp, arith.SubFOp, arith.MulFOp)


@dataclass(frozen=True)
class AnnotateKernels(Pass):
    """Tell LLVM what holds for kernels by construction, and no more.

    - Memory that a kernel writes is no other operand's: pointers are `noalias`.
    - A product and a sum may become one fused multiply-add (`contract`), which
      rounds once instead of twice. NaN, infinities, signed zeros and the order of
      additions are kept.
    - Vectors of `vector_bits` are wanted and legal.

    Attributes:
        vector_bits: Width of a vector register.
    """

    name: ClassVar[str] = "annotate-kernels"

    vector_bits: int = 512

    def run(self, module: ir.Operation) -> None:
        """Annotate all kernels of the module."""
        contract = ir.Attribute.parse("#arith.fastmath<contract>")
        for function in kernels_of(module):
            self._annotate(function)
            for kind in _CONTRACTIBLE:
                for op in operations_of(function, kind):
                    op.attributes["fastmath"] = contract

    def _annotate(self, function: func.FuncOp) -> None:
        noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [
                noalias if isinstance(kind, ir.MemRefType) else ir.DictAttr.get({})
                for kind in function.type.inputs
            ]
        )
        width = ir.StringAttr.get(str(self.vector_bits))
        names = ("min-legal-vector-width", "prefer-vector-width")
        function.attributes["passthrough"] = ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.StringAttr.get(name), width]) for name in names]
        )
        function.attributes["sym_visibility"] = ir.StringAttr.get("public")
