"""Owns the choice of operands for random calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_graphs import Graph, Refused, Value


def is_float(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


def is_number(tensor: Tensor) -> bool:
    return tensor.dtype is not torch.bool


def is_whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point()


def is_bool(tensor: Tensor) -> bool:
    return tensor.dtype is torch.bool


def has_dims(least: int, most: int = 9) -> Callable[[Tensor], bool]:
    return lambda tensor: least <= tensor.dim() <= most


def a_dim(g: Graph, value: Value) -> int:
    """Return a dimension, counted from the front or from the back."""
    rank = value.tensor.dim()
    if not rank:
        raise Refused
    return g.random.randrange(rank) - g.random.choice((0, rank))


def some_dims(g: Graph, value: Value) -> Any:
    """Return None, a dimension or several."""
    rank = value.tensor.dim()
    kind = g.random.random()
    if kind < 0.15 or not rank:
        return None
    if kind < 0.6:
        return a_dim(g, value)
    return sorted(g.random.sample(range(rank), g.random.randint(1, rank)))


def matrix(g: Graph, shape: list[int], dtype: torch.dtype) -> Value:
    """Return a value of a shape, maybe a new input."""
    fitting = [
        v for v in g.values if list(v.tensor.shape) == shape and v.tensor.dtype == dtype
    ]
    if fitting and g.random.random() < 0.6:
        return g.random.choice(fitting)
    return g.input(shape, dtype)


def extent(g: Graph) -> int:
    return g.random.choice(
        (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 48, 64, 65, 100)
    )


def image(g: Graph, dims: int, channels: int | None = None) -> Value:
    """Return an image with so many dimensions beside batch and channels."""

    def fits(t: Tensor) -> bool:
        return t.dim() == dims + 2 and is_float(t) and channels in (None, t.shape[1])

    if g.random.random() < 0.5:
        try:
            return g.pick(fits)
        except Refused:
            pass
    sizes = {1: (3, 8, 17, 40, 64), 2: (3, 5, 8, 14, 17, 32), 3: (3, 5, 8)}[dims]
    batch = g.random.choice((1, 2, 3))
    channels = channels or g.random.choice((1, 2, 3, 4, 6, 8, 16, 17, 32))
    dtype = torch.float32 if g.random.random() < 0.85 else torch.float64
    return g.input(
        [batch, channels, *(g.random.choice(sizes) for _ in range(dims))], dtype
    )


def subscript(g: Graph, value: Value) -> Any:
    """Return a basic index."""
    index: list[Any] = []
    for size in value.tensor.shape:
        kind = g.random.random()
        if kind < 0.45 or size == 0:
            index.append(slice(None))
        elif kind < 0.6:
            index.append(g.random.randrange(-size, size))
        else:
            start = g.random.randrange(size)
            stop = g.random.choice((None, g.random.randint(start, size), -1))
            index.append(slice(start, stop, g.random.choice((None, None, 2, 3))))
    if g.random.random() < 0.15:
        index.insert(g.random.randint(0, len(index)), None)
    return tuple(index)
