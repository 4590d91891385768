"""Owns the building of slices of tensors whose offsets may be values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import ir, tensor


def extract_slice(
    source: Any, offsets: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]
) -> Any:
    """Return a box of a tensor.

    Args:
        source: The tensor.
        offsets: Where the box begins, numbers or values of type index.
        sizes: Its extents.
        shape: The same without the dimensions of extent one that the result lacks.
    """
    element = ir.RankedTensorType(source.type).element_type
    type_ = ir.RankedTensorType.get(list(shape), element)
    static, dynamic = _split(offsets)
    ones = [1] * len(sizes)
    return tensor.extract_slice(
        type_, source, dynamic, [], [], static, list(sizes), ones
    )


def insert_in_parallel(
    part: Any, whole: Any, offsets: Sequence[Any], sizes: Sequence[int]
) -> None:
    """Insert a box into a tensor that iterations of a loop share.

    Args:
        part: The box.
        whole: The tensor.
        offsets: Where the box begins, numbers or values of type index.
        sizes: Its extents, in the dimensions of the whole.
    """
    static, dynamic = _split(offsets)
    ones = [1] * len(sizes)
    tensor.parallel_insert_slice(
        part, whole, dynamic, [], [], static, list(sizes), ones
    )


def _split(offsets: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Static offsets with the marker for dynamic ones, and these."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    static = [o if isinstance(o, int) else marker for o in offsets]
    return static, [o for o in offsets if not isinstance(o, int)]
