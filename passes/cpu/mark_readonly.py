"""Owns mark-readonly: kernels write their destinations, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class MarkReadonly(Pass):
    """Mark what kernels read as read-only, so that bufferisation never reuses it.

    An input may be an argument of the user's, or be read by another kernel later: a
    slice that is inserted into it has to be inserted into a copy.

        func @k(%x, %out) -> tensor
            =>   func @k(%x {bufferization.writable = false}, %out) -> tensor
    """

    name: ClassVar[str] = "mark-readonly"

    def run(self, module: ir.Operation) -> None:
        """Mark the arguments of all kernels that are not their destinations."""
        for function in kernels_of(module):
            inputs = len(function.arguments) - len(function.type.results)
            if not inputs:
                continue  # an array of nothing would outlive bufferisation
            read_only = {"bufferization.writable": ir.BoolAttr.get(False)}
            attributes = [
                read_only if n < inputs else {} for n in range(len(function.arguments))
            ]
            with function.location:
                function.arg_attrs = ir.ArrayAttr.get(
                    [ir.DictAttr.get(a) for a in attributes]
                )
