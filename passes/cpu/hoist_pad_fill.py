"""Owns hoist-pad-fill: the border around a window is filled once for all tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import arith, func, ir, memref, scf
from magweld.dialects.tile_graph import LASTING
from magweld.passes.cpu.buffer_roots import roots_read, roots_written, users_of_buffer
from magweld.passes.cpu.generic_forms import (
    fill_value,
    has_one_result,
    has_reduction,
    maps_of,
)
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class HoistPadFill(Pass):
    """Move the fill of a buffer in front of the loop over tiles where it stays valid.

    A window with a border is a buffer that is filled, with the image copied into its
    middle. All tiles of a call share the buffer and write the same part of it, so what
    is around this part holds from one tile to the next.

        for each tile t:                      b = 0
            b = 0 {lasting}                   for each tile t:
            b[1 .. 10] = x[10 t + ...]   =>       b[1 .. 10] = x[10 t + ...]
            y[10 t + ...] = window(b)             y[10 t + ...] = window(b)

    The plan says which windows last so: nothing else lies in their places. A kernel
    with a loop for each of several shapes of tiles keeps its fills: a call
    may have tiles of one shape alone.
    """

    name: ClassVar[str] = "hoist-pad-fill"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for function in kernels_of(module):
            block = function.entry_block
            loops = [op for op in block.operations if isinstance(op, scf.ForOp)]
            if len(loops) == 1:
                _hoist(function, loops[0])


def _hoist(function: func.FuncOp, loop: scf.ForOp) -> None:
    for allocation in operations_of(function, memref.AllocOp):
        op = allocation.operation
        fill = _lasting_fill(op)
        if fill is None or not _runs_for_every_tile(op, loop):
            continue
        value = fill_value(fill)
        assert value is not None, "found as a fill"
        for moved in (op, value.owner.operation, fill):
            if moved.parent != function.operation:
                moved.move_before(loop.operation)


def _runs_for_every_tile(op: ir.Operation, loop: scf.ForOp) -> bool:
    """Whether nothing but loops is between an operation and the loop over tiles."""
    while op.parent is not None and op.parent.name == "scf.for":
        op = op.parent.operation
        if op == loop.operation:
            return True
    return False


def _lasting_fill(allocation: ir.Operation) -> ir.Operation | None:
    """Return the fill of a buffer that the operations behind it leave as it is.

    The first of them writes all of a part that is always the same, the others read.
    """
    (buffer,) = allocation.results
    users = users_of_buffer(buffer)
    if any(user.block != allocation.block for user in users):
        return None
    block = [op.operation for op in allocation.block.operations]
    fill, *others = sorted(users, key=block.index) or [None]
    if fill is None or LASTING not in fill.attributes:
        return None
    if not _fills(fill, buffer) or not others:
        return None
    writer, *readers = others
    if not _writes_a_fixed_part(writer, buffer):
        return None
    return fill if all(_only_reads(op, buffer) for op in readers) else None


def _fills(op: ir.Operation, buffer: ir.Value) -> bool:
    value = fill_value(op)
    if value is None or op.operands[0] != buffer:
        return False
    owner = value.owner
    return not isinstance(owner, ir.Block) and isinstance(
        owner.opview, arith.ConstantOp
    )


def _writes_a_fixed_part(op: ir.Operation, buffer: ir.Value) -> bool:
    """Whether an operation writes every element of a part of a buffer, and that alone.

    The part lies where it does for every tile, and its old elements are not read.
    """
    if op.name != "linalg.generic" or has_reduction(op) or not has_one_result(op):
        return False
    *_, result = op.operands
    *_, old = op.regions[0].blocks[0].arguments
    whole = maps_of(op)[-1].is_permutation and not list(old.uses)
    return whole and buffer not in roots_read(op) and _is_fixed(result, buffer)


def _is_fixed(part: ir.Value, buffer: ir.Value) -> bool:
    owner = part.owner
    if isinstance(owner, ir.Block) or not isinstance(owner.opview, memref.SubViewOp):
        return False
    dynamic = ir.ShapedType.get_dynamic_size()
    view = owner.opview
    numbers = (view.static_offsets, view.static_sizes, view.static_strides)
    fixed = all(dynamic not in list(attribute) for attribute in numbers)
    return fixed and view.source == buffer


def _only_reads(op: ir.Operation, buffer: ir.Value) -> bool:
    return op.name == "linalg.generic" and not {buffer, None} & roots_written(op)
