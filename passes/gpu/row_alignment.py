"""Owns how rows of a buffer or subview lie in memory, and their known alignment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from magweld.bindings import ir, memref
from magweld.passes.gpu.index_divisors import divisor_of
from magweld.passes.gpu.structure import VECTOR_BYTES, element_bytes


def row_alignment(value: ir.Value) -> int:
    """Return how many bytes divide the address of each row of a memref.

    A row is what the last dimension indexes. Arguments of kernels and allocations begin
    at multiples of the widest access of a thread (16 bytes), which is the most that is
    returned. Subviews and views of other shapes are followed; of any other memref the
    alignment is that of one element.
    """
    return _bytes_of(value, _start_divisor(value), *_stride_divisors(value)[:-1])


def start_alignment(value: ir.Value) -> int:
    """Return how many bytes divide the address of the first element, as above."""
    return _bytes_of(value, _start_divisor(value))


def has_contiguous_rows(value: ir.Value) -> bool:
    """Tell whether the elements of a row of a memref lie side by side."""
    strides, _ = ir.MemRefType(value.type).get_strides_and_offset()
    return bool(strides) and strides[-1] == 1


def offset_divisors(view: Any) -> Iterator[int]:
    """Yield what divides the offsets of a subview or a cast; 0 for none."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(view.offsets)
    for offset in view.static_offsets:
        yield divisor_of(next(dynamic)) if offset == marker else offset


def _bytes_of(value: ir.Value, *divisors: int) -> int:
    element = ir.MemRefType(value.type).element_type
    return math.gcd(VECTOR_BYTES, math.gcd(*divisors) * element_bytes(element))


def _start_divisor(value: ir.Value) -> int:
    """Return what divides the position of the first element, in elements; 0 for all."""
    if isinstance(value, ir.BlockArgument) or isinstance(
        value.owner.opview, memref.AllocOp
    ):
        return 0
    op = value.owner.opview
    if isinstance(op, memref.CastOp | memref.CollapseShapeOp | memref.ExpandShapeOp):
        return _start_divisor(op.operands[0])
    if isinstance(op, memref.ReinterpretCastOp):
        # Its offset counts from what is cast.
        return math.gcd(_start_divisor(op.source), *offset_divisors(op))
    if isinstance(op, memref.ViewOp):
        # Shared memory begins at such a multiple as well.
        element = ir.MemRefType(value.type).element_type
        return divisor_of(op.byte_shift) // element_bytes(element)
    if not isinstance(op, memref.SubViewOp):
        return 1
    strides = _stride_divisors(op.source)
    moved = (a * b for a, b in zip(offset_divisors(op), strides, strict=True))
    return math.gcd(_start_divisor(op.source), *moved)


def _stride_divisors(value: ir.Value) -> list[int]:
    """Return what divides each stride of a memref: 1 for one that is not known."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, _ = ir.MemRefType(value.type).get_strides_and_offset()
    return [1 if stride == marker else stride for stride in strides]
