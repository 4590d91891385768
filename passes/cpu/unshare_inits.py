"""Owns unshare-inits: what is filled is written on by one operation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import UNSHARED
from magweld.passes.cpu.generic_forms import fill_value
from magweld.passes.cpu.kernels import generics_of, kernels_of, mark_apart
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class UnshareInits(Pass):
    """Give each operation that goes on from a filled tensor a fill of its own.

    Two sums of one shape begin from one tensor of zeros, as equal values are one. As
    buffers they cannot: one would begin from a copy of the zeros, which takes longer
    than writing them, and which nothing that looks for zeros knows for what it is;
    threads of a GPU would not have it in registers. The
    fills are numbered by `tile_graph.unshared`, and so are the tensors that they fill:
    they stay apart, whoever looks for equal values.

        %z = fill 0                   %z = fill 0
        %a = matmul %x, %y, %z   =>   %a = matmul %x, %y, %z
        %b = matmul %u, %v, %z        %w = fill 0
                                      %b = matmul %u, %v, %w
    """

    name: ClassVar[str] = "unshare-inits"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for op in list(_fills_of(module)):
            if op.results:
                _separate(op)


def _fills_of(module: ir.Operation) -> Iterator[ir.Operation]:
    """Yield what fills a tensor in the kernels of a module: its last operand."""
    for _, op in generics_of(module):
        if fill_value(op) is not None:
            yield op
    for kernel in kernels_of(module):
        yield from (op.operation for op in operations_of(kernel, linalg.FillOp))


def _separate(op: ir.Operation) -> None:
    """Clone a fill for all its users but one, and the tensor that it fills."""
    filled = len(op.operands) - 1
    empty = op.operands[filled].owner
    if isinstance(empty, ir.Block) or empty.operation.name != "tensor.empty":
        return
    uses = list(op.results[0].uses)
    if not uses:
        return
    uses.remove(_nearest(op, uses))
    for use in uses:
        user = use.owner.operation
        with ir.InsertionPoint(user):
            own = empty.operation.clone().operation
            clone = op.clone().operation
        mark_apart(own, UNSHARED)
        mark_apart(clone, UNSHARED)
        clone.operands[filled] = own.results[0]
        user.operands[use.operand_number] = clone.results[0]


def _nearest(op: ir.Operation, uses: list[ir.OpOperand]) -> ir.OpOperand:
    """Return the use that keeps a fill: the first in its block, if there is one.

    What a loop around a use begins from anew is filled in the loop.
    """
    users = [use.owner.operation for use in uses]
    for other in op.block.operations:
        if other.operation in users:
            return uses[users.index(other.operation)]
    return uses[-1]
