"""Owns generalize-copies: copies between buffers become linalg operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir, memref
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class GeneralizeCopies(Pass):
    """Turn `memref.copy` in kernels into `linalg.generic`; drop copies onto themselves.

    A copy between strided buffers would be a call into a runtime library; as a
    linalg operation it is vectorised with the rest.
    """

    name: ClassVar[str] = "generalize-copies"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the copies of all kernels of the module."""
        for function in kernels_of(module):
            for op in operations_of(function, memref.CopyOp):
                if op.source != op.target:
                    _generalize(op)
                op.operation.erase()


def _generalize(op: memref.CopyOp) -> None:
    maps = [ir.AffineMap.get_identity(op.source.type.rank)] * 2
    with ir.InsertionPoint(op), op.location:
        build_generic([op.source], [op.target], maps, lambda values: values[:1])
