"""Owns generalize-copies: copies between buffers become linalg operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir, linalg, memref
from magweld.passes.base import Pass
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.ir_utils import operations_of


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
    kind = op.source.type
    identity = ir.AffineMap.get_identity(kind.rank)
    with ir.InsertionPoint(op), op.location:
        generic = linalg.GenericOp(
            result_tensors=[],
            inputs=[op.source],
            outputs=[op.target],
            indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(identity)] * 2),
            iterator_types=ir.ArrayAttr.get(
                [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * kind.rank
            ),
        )
        element = kind.element_type
        block = generic.regions[0].blocks.append(element, element)
        with ir.InsertionPoint(block):
            linalg.YieldOp([block.arguments[0]])
