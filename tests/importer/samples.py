"""Tensors that the cases are made of: deterministic, and with edge values."""

from __future__ import annotations

from typing import Any

import torch


def floats(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(seed + 7 * len(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


def positive(*shape: int, seed: int = 0) -> Any:
    return floats(*shape, seed=seed).abs() + 0.1


def whole(*shape: int, seed: int = 0, dtype: torch.dtype = torch.int64) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-5, 6, shape, generator=generator, dtype=dtype)


def bools(*shape: int, seed: int = 0) -> Any:
    return floats(*shape, seed=seed) > 0


X = floats(4, 6)
Y = floats(4, 6, seed=1)
ROW = floats(6, seed=2)
COLUMN = floats(4, 1, seed=3)
IMAGE = floats(2, 4, 9, 9)
INFINITY = float("inf")
SPECIAL = torch.tensor(
    [
        [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5],
        [INFINITY, -INFINITY, float("nan"), 88.0, -88.0, 1e-30, 3.0, -3.0],
    ]
)
