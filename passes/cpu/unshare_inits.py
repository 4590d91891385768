"""Owns unshare-inits: what is filled is written on by one operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir
from magweld.passes.base import Pass
from magweld.passes.cpu.generic_forms import fill_value
from magweld.passes.cpu.kernels import generics_of


@dataclass(frozen=True)
class UnshareInits(Pass):
    """Give each operation that goes on from a filled tensor a fill of its own.

    Two sums of one shape begin from one tensor of zeros, as equal values are one. As
    buffers they cannot: one would begin from a copy of the zeros, which takes longer
    than writing them, and which nothing that looks for zeros knows for what it is.

        %z = fill 0                   %z = fill 0
        %a = matmul %x, %y, %z   =>   %a = matmul %x, %y, %z
        %b = matmul %u, %v, %z        %w = fill 0
                                      %b = matmul %u, %v, %w
    """

    name: ClassVar[str] = "unshare-inits"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for _, op in generics_of(module):
            if op.results and fill_value(op) is not None:
                _separate(op)


def _separate(op: ir.Operation) -> None:
    """Clone a fill for all its users but one, and the tensor that it fills."""
    empty = op.operands[0].owner
    if isinstance(empty, ir.Block) or empty.operation.name != "tensor.empty":
        return
    # The last that is listed is most often the first that runs, next to the fill.
    for use in list(op.results[0].uses)[:-1]:
        user = use.owner.operation
        with ir.InsertionPoint(user):
            own = empty.operation.clone().operation
            clone = op.clone().operation
        clone.operands[0] = own.results[0]
        user.operands[use.operand_number] = clone.results[0]
