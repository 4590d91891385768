"""Owns erase-host-functions: only tiled kernels are lowered to code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import is_kernel
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class EraseHostFunctions(Pass):
    """Erase everything in a module but its tiled kernels.

    The host function, which calls kernels and libraries, is no code: the runtime reads
    it as a list of steps. Declarations of library calls and externals go with it.

        func @main(%x) { call @kernel_0(%x, %o) }
        func @kernel_0(..) attributes {tile_graph.kernel}     =>    func @kernel_0(..)
        func @library_0(..)
    """

    name: ClassVar[str] = "erase-host-functions"

    def run(self, module: ir.Operation) -> None:
        """Erase what is no kernel."""
        for op in list(module.regions[0].blocks[0].operations):
            if not is_kernel(op):
                op.operation.erase()
