"""Owns who reads a tile, and whose elements of it a thread reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import FRAGMENT
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    has_windows,
    inputs_of,
    is_contraction,
    is_structured,
    reads_transposed,
)
from magweld.passes.gpu.structure import is_in_space, workgroup_space
from magweld.passes.ir.utils import users_of

_VIEWS = (memref.CollapseShapeOp, memref.ExpandShapeOp, memref.SubViewOp)


def readers_of(buffer: ir.Value) -> Iterator[tuple[Any, ir.Value]]:
    """Yield the operations that read a buffer, or a view of it, with what they read."""
    for user in users_of(buffer):
        if isinstance(user, _VIEWS):
            yield from readers_of(user.result)
        elif is_structured(user) and buffer in inputs_of(user):
            yield user, buffer


def is_read_by_others(op: Any, value: ir.Value) -> bool:
    """Tell whether threads read elements of an input that others have written."""
    if FRAGMENT in op.operation.attributes or is_contraction(op) or has_windows(op):
        return True
    return reads_transposed(op, value)


def is_read_in_part(nest: LoopNest, number: int, value: ir.Value) -> bool:
    """Tell whether an operand is an input that is a part of a tile in shared memory."""
    is_input = number < len(nest.maps) - nest.outputs
    if not is_input or nest.reduction:
        return False
    while not isinstance(value, ir.BlockArgument):
        view = value.owner.opview
        if not isinstance(view, memref.ExpandShapeOp):
            is_part = isinstance(view, memref.SubViewOp)
            return is_part and is_in_space(value, workgroup_space())
        value = view.src
    return False
