"""Owns where the elements of views of dense tensors lie, without tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

aten = torch.ops.aten


@dataclass(frozen=True)
class Strided:
    """Which elements of a memory a tensor has.

    Attributes:
        shape: Extents.
        strides: Elements from one place along each dimension to the next one.
        offset: Elements before the first one.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def dense(shape: Sequence[int]) -> Strided:
        """Return a contiguous tensor that begins where its memory does."""
        sizes = [max(extent, 1) for extent in shape]
        strides = (math.prod(sizes[dim + 1 :]) for dim in range(len(sizes)))
        return Strided(tuple(shape), tuple(strides))

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Extents and strides, dimensions joined that lie one after another."""
        runs: list[tuple[int, int]] = []
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 1:
                continue
            if runs and runs[-1][1] == extent * stride:
                runs[-1] = runs[-1][0] * extent, stride
            else:
                runs.append((extent, stride))
        return runs

    def is_all_of(self, memory: Strided) -> bool:
        """Whether it has all elements of another tensor in the order of memory.

        Args:
            memory: One without gaps, of whose memory this is a view.
        """
        count = math.prod(memory.shape)
        return math.prod(self.shape) == count and self.runs in ([], [(count, 1)])


def viewed(target: object, source: Strided, *args: Any) -> Strided | None:
    """Return the view that an operator makes, None if it makes none, or none known.

    Args:
        target: An ATen operator.
        source: What it is given first.
        args: Its further arguments, in order.
    """
    view = _VIEWS.get(target)
    return None if view is None else view(source, *args)


def _permute(source: Strided, dims: Sequence[int]) -> Strided:
    return replace(
        source,
        shape=tuple(source.shape[dim] for dim in dims),
        strides=tuple(source.strides[dim] for dim in dims),
    )


def _transpose(source: Strided, first: int, second: int) -> Strided:
    if not source.shape:
        return source
    dims = list(range(len(source.shape)))
    dims[first], dims[second] = dims[second], dims[first]
    return _permute(source, dims)


def _t(source: Strided) -> Strided:
    return _permute(source, range(len(source.shape))[::-1])


def _expand(source: Strided, sizes: Sequence[int]) -> Strided:
    added = len(sizes) - len(source.shape)
    shape = (1,) * added + source.shape
    strides = (0,) * added + source.strides
    pairs = [
        (extent, stride) if size in (-1, extent) else (size, 0)
        for size, extent, stride in zip(sizes, shape, strides, strict=True)
    ]
    return replace(
        source,
        shape=tuple(extent for extent, _ in pairs),
        strides=tuple(stride for _, stride in pairs),
    )


def _select(source: Strided, dim: int, index: int) -> Strided:
    dim %= len(source.shape)
    index %= source.shape[dim]
    kept = [n for n in range(len(source.shape)) if n != dim]
    offset = source.offset + index * source.strides[dim]
    return replace(_permute(source, kept), offset=offset)


def _slice(
    source: Strided,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Strided:
    dim %= len(source.shape)
    extent, stride = source.shape[dim], source.strides[dim]
    places = range(extent)[start:end:step]
    shape, strides = list(source.shape), list(source.strides)
    shape[dim], strides[dim] = len(places), stride * step
    begin, _, _ = slice(start, end).indices(extent)
    return Strided(tuple(shape), tuple(strides), source.offset + begin * stride)


def _view(source: Strided, sizes: Sequence[int]) -> Strided | None:
    """Return a tensor of another shape if strides let its elements stay in order."""
    count = math.prod(source.shape)
    known = -math.prod(sizes) if -1 in sizes else math.prod(sizes)
    if count == 0 or known == 0:
        return None
    shape = tuple(count // known if size == -1 else size for size in sizes)
    if math.prod(shape) != count:
        return None
    strides: list[int] = []
    left = list(shape)
    for extent, stride in reversed(source.runs):
        inner = 1
        while left and (inner < extent or left[-1] == 1):
            strides.append(inner * stride)
            inner *= left.pop()
        if inner != extent:
            return None
    strides += [strides[-1] if strides else 1] * len(left)
    return Strided(shape, tuple(reversed(strides)), source.offset)


_VIEWS: Final[dict[object, Callable[..., Strided | None]]] = {
    aten.expand.default: _expand,
    aten.permute.default: _permute,
    aten.select.int: _select,
    aten.slice.Tensor: _slice,
    aten.t.default: _t,
    aten.transpose.int: _transpose,
    aten.view.default: _view,
}
