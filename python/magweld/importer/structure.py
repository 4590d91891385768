"""Owns operators that only arrange elements, as slices, views and plain tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

# Whole numbers below are floats of the type.
_EXACT_BELOW: Final = {torch.float32: 1 << 24, torch.float64: 1 << 53}


def _split(x: Tensor, size: int, dim: int = 0) -> Any:
    if size == 0:
        return NotImplemented
    starts = range(0, x.shape[dim], size)
    return [aten.slice.Tensor(x, dim, start, start + size) for start in starts]


def _split_with_sizes(x: Tensor, sizes: Sequence[int], dim: int = 0) -> Any:
    parts, start = [], 0
    for size in sizes:
        parts.append(aten.slice.Tensor(x, dim, start, start + size))
        start += size
    return parts


def _cat(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    filled = [tensor for tensor in tensors if tensor.numel()]
    same = len({tensor.dtype for tensor in tensors}) == 1
    if not filled or not same or len(filled) == len(tensors):
        return NotImplemented
    if len(filled) > 1:
        return aten.cat.default(filled, dim)
    return aten.clone.default(filled[0])


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        (shift,) = shifts
        return _roll(x.reshape(-1), [shift], [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = x.shape[dim]
        begin = -shift % extent if extent else 0
        if begin:
            last = aten.slice.Tensor(x, dim, begin, extent)
            x = aten.cat.default([last, aten.slice.Tensor(x, dim, 0, begin)], dim)
    return aten.clone.default(x)


def _range(
    start: float,
    end: float,
    step: float = 1,
    *,
    dtype: torch.dtype | None = None,
    **options: Any,
) -> Any:
    """Count in whole numbers where the floats of a range are such."""
    if dtype is None and any(isinstance(n, float) for n in (start, end, step)):
        dtype = torch.get_default_dtype()
    if dtype not in _EXACT_BELOW:
        return NotImplemented
    whole = float(start).is_integer() and float(step).is_integer()
    if not whole or max(map(abs, (start, end, step))) >= _EXACT_BELOW[dtype]:
        return NotImplemented
    last = math.ceil(end) if step > 0 else math.floor(end)
    options["dtype"] = torch.int64
    return aten.arange.start_step(int(start), last, int(step), **options).to(dtype)


def _range_from_zero(end: float, **options: Any) -> Any:
    return _range(0, end, **options)


def _unbind(x: Tensor, dim: int = 0) -> Any:
    return [aten.select.int(x, dim, index) for index in range(x.shape[dim])]


def _new_empty(x: Tensor, size: Sequence[int], **options: Any) -> Any:
    return aten.empty.memory_format(size, dtype=options.get("dtype") or x.dtype)


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Any:
    return source.to(x.dtype).expand(x.shape)


def _fill_scalar(x: Tensor, value: Any) -> Any:
    return aten.full.default(x.shape, value, dtype=x.dtype)


def _fill_tensor(x: Tensor, value: Tensor) -> Any:
    return value.to(x.dtype).expand(x.shape)


STRUCTURE: dict[OpOverload, Callable[..., Any]] = {
    aten.cat.default: _cat,
    aten.copy.default: _copy,
    aten.fill.Scalar: _fill_scalar,
    aten.fill.Tensor: _fill_tensor,
    aten.new_empty.default: _new_empty,
    aten.roll.default: _roll,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split_with_sizes,
    aten.unbind.int: _unbind,
    aten.unsafe_split.Tensor: _split,
    aten.unsafe_split_with_sizes.default: _split_with_sizes,
}
"""Decompositions that hold for elements of every type."""

RANGES: dict[OpOverload, Callable[..., Any]] = {
    aten.arange.default: _range_from_zero,
    aten.arange.start: _range,
    aten.arange.start_step: _range,
}
"""Of graphs for one size: where ranges begin and end are numbers of the program."""
