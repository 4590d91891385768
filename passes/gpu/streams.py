"""Owns which operations stream through memory, and how their loops walk through it."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.passes.gpu.linalg_structure import LoopNest, reads_across_rows
from magweld.passes.gpu.row_alignment import start_alignment
from magweld.passes.gpu.streaming_layout import Stream
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    element_bytes,
    is_in_space,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.tile_readers import (
    is_read_by_others,
    is_read_in_part,
    readers_of,
)


def streams_of(op: Any, nest: LoopNest, whole: int | None) -> list[Stream]:
    """Return how loops walk through operands in global memory.

    None where other operations may have the same elements of a tile by thread, which
    stay in registers then, or where how far rows lie apart is not known.

    Args:
        op: The operation.
        nest: Its loops.
        whole: The loop that each thread runs whole, None for none.
    """
    if not is_apart(op, nest):
        return []
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    found = []
    for value, loops in zip(op.operands, nest.maps, strict=True):
        if not _is_buffer(value) or is_in_space(value, workgroup_space()):
            continue
        strides, _ = value.type.get_strides_and_offset()
        if marker in strides:
            return []
        element = element_bytes(value.type.element_type)
        steps = [0] * len(nest.extents)
        for loop, stride in zip(loops, strides, strict=True):
            if loop is not None:
                steps[loop] += stride * element
        width = element
        if whole is not None and steps[whole] == element:
            width *= nest.extents[whole]
        alignment = start_alignment(value)
        # No more is known of what begins at a multiple of the widest access.
        known = alignment if alignment < VECTOR_BYTES else 0
        found.append(Stream(tuple(steps), width, known))
    return found


def is_apart(op: Any, nest: LoopNest) -> bool:
    """Tell whether no tile is read or written here as its other users have it."""
    if nest.reduction:
        return False
    for position, value in enumerate(op.operands):
        if not _is_buffer(value):
            continue
        if not is_in_space(value, workgroup_space()):
            if any(index.is_window for index in nest.indices[position]):
                return False
            continue
        if position < len(nest.maps) - nest.outputs:
            apart = reads_across_rows(nest, position) or is_read_in_part(
                nest, position, value
            )
        else:
            readers = list(readers_of(storage_of(value)))
            apart = all(is_read_by_others(*reader) for reader in readers)
        if not apart:
            return False
    return True


def _is_buffer(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def is_transpose(nest: LoopNest) -> bool:
    """Tell whether an input is read across its rows, all elements on their own.

    Threads that are neighbours along a row of the result are pieces of a column apart
    there: as many of them as have banks of their own, others beside them.
    """
    inputs = range(len(nest.maps) - nest.outputs)
    return any(reads_across_rows(nest, position) for position in inputs)
