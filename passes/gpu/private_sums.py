"""Owns sums that are made in registers, though other threads read them later.

A buffer of which threads make their own slices, in steps of a reduction, and which
others read in another way behind these: it is written once, when the sums are there.
"""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, linalg, memref, scf
from magweld.passes.gpu.linalg_structure import is_structured, loop_nest_of, outputs_of
from magweld.passes.gpu.structure import thread_mapping
from magweld.passes.gpu.thread_slices import (
    ThreadSlice,
    strided_subview,
    thread_loop_around,
    thread_slice_of,
)
from magweld.passes.ir.utils import users_of

_VIEWS = (memref.SubViewOp, memref.ExpandShapeOp, memref.CollapseShapeOp)


def sums_of(buffer: Any) -> ThreadSlice | None:
    """Return the slice of each thread of a buffer that holds sums, None of others.

    Who writes takes that slice, and all other readers come behind the last of these.
    """
    uses = list(users_of(buffer.memref))
    written = [use for use in uses if not _is_read_only(use, buffer.memref)]
    slices = {_own_slice(use, buffer) for use in written}
    part = slices.pop() if len(slices) == 1 else None
    if part is None or not any(map(_is_reduced, written)):
        return None
    others = [use for use in uses if _own_slice(use, buffer) != part]
    is_behind = all(
        _is_before(one, other, buffer) for one in written for other in others
    )
    return part if is_behind else None


def write_once(buffer: Any, part: ThreadSlice, registers: ir.Value) -> None:
    """Let threads make their slices of a buffer in registers, and then copy them to it.

    Args:
        buffer: The buffer.
        part: As `sums_of` returns it.
        registers: A private buffer as large as a slice.
    """
    uses = list(users_of(buffer.memref))
    written = [use for use in uses if not _is_read_only(use, buffer.memref)]
    last, *rest = written
    for use in rest:
        last = use if _is_before(last, use, buffer) else last
    own = [use for use in uses if _own_slice(use, buffer) == part]
    rank, loops = len(part.trips), [d.loop for d in part.dimensions]
    with ir.InsertionPoint.after(_in_block(last, buffer)), buffer.location:
        forall = scf.ForallOp(
            [0] * rank, list(part.trips), [1] * rank, [], mapping=thread_mapping(rank)
        )
        variables = forall.induction_variables
        with ir.InsertionPoint(forall.body):
            result = strided_subview(
                buffer.memref,
                [None if i is None else variables[i] for i in loops],
                [d.size for d in part.dimensions],
                [d.stride for d in part.dimensions],
            )
            linalg.copy(registers, outs=[result])
            scf.InParallelOp()
    for subview in own:
        subview.result.replace_all_uses_with(registers)
        subview.erase()


def _own_slice(use: Any, buffer: Any) -> ThreadSlice | None:
    """Return the slice of a buffer that an operation takes for its thread, if any."""
    loop = thread_loop_around(use)
    if loop is None or not isinstance(use, memref.SubViewOp):
        return None
    part = thread_slice_of(use.result, loop)
    if part is None or part.base != buffer.memref or not part.is_disjoint:
        return None
    whole = len(use.result.type.shape) == len(part.dimensions)
    return part if whole and all(map(is_structured, users_of(use.result))) else None


def _is_read_only(use: Any, value: ir.Value) -> bool:
    """Tell whether all that becomes of a value through an operation is read."""
    if isinstance(use, _VIEWS):
        view = use.operation.results[0]
        return all(_is_read_only(user, view) for user in users_of(view))
    return is_structured(use) and value not in outputs_of(use)


def _is_reduced(subview: Any) -> bool:
    """Tell whether a reduction adds to a slice."""
    return any(
        bool(loop_nest_of(op).reduction) and subview.result in outputs_of(op)
        for op in users_of(subview.result)
    )


def _in_block(use: Any, buffer: Any) -> Any:
    """Return the operation of the block of a buffer that a use of it is part of."""
    operation, block = use.operation, buffer.operation.block
    while operation.block != block:
        operation = operation.parent
    return operation


def _is_before(one: Any, other: Any, buffer: Any) -> bool:
    """Tell whether the part of the block with a use comes before that with another."""
    first, second = _in_block(one, buffer), _in_block(other, buffer)
    return bool(first.is_before_in_block(second))
