"""Owns declare-shared-memory: dynamic shared memory becomes an external symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import gpu, ir, llvm
from magweld.passes.gpu.structure import SHARED_ADDRESS_SPACE, SHARED_ALIGNMENT
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class DeclareSharedMemory(Pass):
    """Give the symbol of dynamic shared memory external linkage.

    Upstream lowers `gpu.dynamic_shared_memory` to an internal array of no elements.
    LLVM takes that for an object of no size whose contents nobody else sees: it may
    drop stores to it, and gives it no room beside other variables. An external array
    is what both targets take for memory whose size the launch tells.
    """

    name: ClassVar[str] = "declare-shared-memory"

    alignment: Annotated[int, "bytes that its start is a multiple of"] = (
        SHARED_ALIGNMENT
    )

    def run(self, module: Any) -> None:
        """Rewrite the symbols of all GPU modules."""
        external = ir.Attribute.parse("#llvm.linkage<external>")
        i64 = ir.IntegerType.get_signless(64)
        for device_module in operations_of(module, gpu.GPUModuleOp):
            for symbol in operations_of(device_module, llvm.GlobalOp):
                if ir.IntegerAttr(symbol.addr_space).value == SHARED_ADDRESS_SPACE:
                    attributes = symbol.operation.attributes
                    attributes["linkage"] = external
                    attributes["alignment"] = ir.IntegerAttr.get(i64, self.alignment)
