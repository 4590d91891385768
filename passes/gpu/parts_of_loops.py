"""Owns operations on buffers in two parts, each with some iterations of a loop."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, linalg, memref
from magweld.passes.gpu.linalg_structure import LoopNest
from magweld.passes.ir.utils import operations_of


def may_be_parted(op: Any, nest: LoopNest, loop: int) -> bool:
    """Tell whether the iterations of a loop of an operation can be split in two.

    That is so if the loop is an index of its own wherever it is a part of one, if the
    operation does not ask for the number of an iteration, and if it is known how far
    rows lie apart.
    """
    moving = (index for operand in nest.indices for index in operand if index.is_window)
    if any(loop in dict(index.terms) for index in moving):
        return False
    if operations_of(op, linalg.IndexOp):
        return False
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    buffers = [value for value in op.operands if isinstance(value.type, ir.MemRefType)]
    return all(
        marker not in value.type.get_strides_and_offset()[0] for value in buffers
    )


def in_parts(op: Any, nest: LoopNest, loop: int, first: int) -> list[Any]:
    """Replace an operation by two, the first of which has so many of the iterations.

    Args:
        op: A linalg operation on buffers.
        nest: Its loops.
        loop: The loop that is split.
        first: Iterations of the first part.
    """
    made = []
    for start, count in ((0, first), (first, nest.extents[loop] - first)):
        with ir.InsertionPoint(op), op.location:
            operands = [
                _part(value, loops, loop, start, count)
                for value, loops in zip(op.operands, nest.maps, strict=True)
            ]
            clone = op.operation.clone()
            for position, operand in enumerate(operands):
                clone.operands[position] = operand
            made.append(clone.opview)
    op.operation.erase()
    return made


def _part(
    value: ir.Value, loops: tuple[int | None, ...], loop: int, start: int, count: int
) -> ir.Value:
    """Return what a part reads or writes of an operand."""
    if loop not in loops:
        return value
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    starts = [start if one == loop else 0 for one in loops]
    sizes = [
        count if one == loop else size
        for one, size in zip(loops, type_.shape, strict=True)
    ]
    if offset != ir.ShapedType.get_dynamic_stride_or_offset():
        offset += sum(a * b for a, b in zip(starts, strides, strict=True))
    layout = ir.StridedLayoutAttr.get(offset, strides)
    result = ir.MemRefType.get(sizes, type_.element_type, layout, type_.memory_space)
    made: ir.Value = memref.SubViewOp(
        result, value, [], [], [], starts, sizes, [1] * len(sizes)
    ).result
    return made
