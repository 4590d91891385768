"""Owns the reading of slices: which part of which tensor an operand is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.passes.analysis.cloning import defining_op


@dataclass(frozen=True)
class Slice:
    """A box of a tensor, its extents those of the value that was asked for.

    Attributes:
        source: The tensor.
        offsets: Where the box begins, one number a dimension.
    """

    source: Any
    offsets: tuple[int, ...]


def static_slice(op: Any) -> Slice | None:
    """Return what a `tensor.extract_slice` takes, None for anything but a plain box.

    A plain box has offsets known here, takes every element of it, and keeps the rank.
    """
    if op is None or op.operation.name != "tensor.extract_slice":
        return None
    source, taken = op.operation.operands[0], op.operation.results[0]
    offsets = _numbers(op, "static_offsets")
    same_rank = len(offsets) == len(taken.type.shape)
    if not same_rank or set(_numbers(op, "static_strides")) - {1}:
        return None
    if ir.ShapedType.get_dynamic_stride_or_offset() in offsets:
        return None
    if not taken.type.has_static_shape:
        return None
    return Slice(source, offsets)


def sliced_operand(value: Any, inputs: Collection[Any]) -> Slice:
    """Trace an operand through plain slices, at most to one of `inputs`."""
    offsets = (0,) * len(getattr(value.type, "shape", ()))
    while value not in inputs:
        found = static_slice(defining_op(value))
        if found is None:
            break
        value = found.source
        offsets = tuple(map(sum, zip(offsets, found.offsets, strict=True)))
    return Slice(value, offsets)


def _numbers(op: Any, name: str) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(op.operation.attributes[name]))
