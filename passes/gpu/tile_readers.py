"""Owns who reads a tile, and whose elements of it a thread reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import FRAGMENT
from magweld.passes.gpu.linalg_structure import (
    has_windows,
    inputs_of,
    is_contraction,
    is_structured,
    reads_transposed,
)
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
