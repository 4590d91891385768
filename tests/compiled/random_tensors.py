"""Owns random tensors: shapes, types, values and how they lie in memory."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

EXTENTS = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65, 100),
    *(37, 67, 127, 251, 509),
)
MOST_ELEMENTS = 40_000
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NARROW_INTEGERS = (torch.int8, torch.uint8, torch.int16)
INTEGERS = (torch.int64, torch.int32, *NARROW_INTEGERS)
DTYPES = (
    *(torch.float32,) * 12,
    *(torch.float64,) * 2,
    *(torch.int64, torch.int32, torch.bool) * 2,
    *(torch.float16, torch.bfloat16),
    *NARROW_INTEGERS,
)
LAYOUTS = (*("dense",) * 4, "permuted", "gaps", "wide", "late")


class RandomTensors:
    """Makes tensors; whole numbers, and infinities and NaN if they are `special`."""

    def __init__(self, chance: random.Random, special: bool) -> None:
        self._random = chance
        self._special = special
        self._generator = torch.Generator().manual_seed(chance.getrandbits(32))

    def shape(self, rank: int | None = None, most: int = MOST_ELEMENTS) -> list[int]:
        """Return a random shape."""
        rank = self._random.randint(0, 4) if rank is None else rank
        shape: list[int] = []
        for _ in range(rank):
            left = most // max(1, math.prod(shape))
            shape.append(self._random.choice([e for e in EXTENTS if e <= left]))
        self._random.shuffle(shape)
        if shape and self._random.random() < 0.01:
            shape[self._random.randrange(len(shape))] = 0
        return shape

    def tensor(
        self,
        shape: list[int],
        dtype: torch.dtype,
        values: range | None = None,
        *,
        dense: bool = False,
    ) -> Tensor:
        """Return a tensor, contiguous in memory or, unless `dense`, not."""
        layout = "dense" if dense else self._random.choice(LAYOUTS)
        return self._laid_out(layout, shape, lambda s: self._data(s, dtype, values))

    def _data(
        self, shape: Sequence[int], dtype: torch.dtype, values: range | None
    ) -> Tensor:
        if dtype is torch.bool:
            return torch.rand(shape, generator=self._generator) > 0.5
        low = 0 if dtype is torch.uint8 else -4
        low, high = (values.start, values.stop) if values else (low, 5)
        data = torch.randint(low, high, shape, generator=self._generator).to(dtype)
        if self._special and dtype in FLOATS and data.numel():
            flat = data.view(-1)
            for number in (math.inf, -math.inf, math.nan, -0.0):
                flat[self._random.randrange(len(flat))] = number
        return data

    def _laid_out(
        self, kind: str, shape: list[int], make: Callable[[Sequence[int]], Tensor]
    ) -> Tensor:
        rank = len(shape)
        if kind == "permuted":
            order = self._random.sample(range(rank), rank)
            base = make([shape[d] for d in order])
            return base.permute([order.index(d) for d in range(rank)])
        if kind == "gaps" and rank:
            steps = [self._random.choice((1, 1, 2)) for _ in shape]
            base = make([e * s for e, s in zip(shape, steps, strict=True)])
            return base[tuple(slice(None, None, s) for s in steps)]
        if kind == "wide" and rank:
            dim = self._random.randrange(rank)
            base = make([1 if d == dim else e for d, e in enumerate(shape)])
            return base.expand(shape)
        if kind == "late" and rank:
            return make([shape[0] + 1, *shape[1:]])[1:]
        return make(shape)
