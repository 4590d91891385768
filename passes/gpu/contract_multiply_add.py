"""Owns contract-multiply-add: products and sums in GPU code may become one FMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, gpu, ir
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class ContractMultiplyAdd(Pass):
    """Allow `a * b + c` in GPU modules to be rounded once.

    Sets the fast-math flag `contract` on additions, subtractions and products of
    floats, which is what device compilers do by default; no other flag, so that
    order, NaN and infinities are kept. Runs before expand-gpu-math, whose arithmetic
    is exact as written.
    """

    name: ClassVar[str] = "contract-multiply-add"

    def run(self, module: Any) -> None:
        """Set the flag in all GPU modules."""
        flag = ir.Attribute.parse("#arith.fastmath<contract>")
        for device_module in operations_of(module, gpu.GPUModuleOp):
            for kind in (arith.AddFOp, arith.MulFOp, arith.SubFOp):
                for op in operations_of(device_module, kind):
                    op.operation.attributes["fastmath"] = flag
