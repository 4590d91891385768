"""Tensors one behind the other, made and read in tiles, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from magweld import frontend


def attention(q: Tensor, past: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The keys come in two parts, along the dimension that is reduced."""
    keys, values = torch.cat([past, k], 2), torch.cat([past, v], 2)
    return torch.softmax(q @ keys.transpose(-1, -2) * 0.125, -1) @ values


def dense_block(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """A window of channels that come from two operators."""
    y = F.relu(F.conv2d(x, first, padding=1))
    return F.conv2d(torch.cat([x, y], 1), second, padding=1)


def one_thrice(x: Tensor) -> Tensor:
    return torch.cat([x, x, x * 2]).sum(1)


def softmax_of_all(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x.exp(), y], -1).softmax(-1)


def parts_of_all(x: Tensor, y: Tensor) -> Tensor:
    a, b = torch.cat([x, y], 1).chunk(2, 1)
    return a * b.sigmoid()


def rotary(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1) * x + x


def also_a_result(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    joined = torch.cat([x.relu(), y, y.exp()], 1)
    return joined, joined.sum(1)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "keys": (attention, ((1, 4, 64, 64), (1, 4, 500, 64), *[(1, 4, 12, 64)] * 2)),
    "channels": (dense_block, ((2, 16, 19, 30), (24, 16, 3, 3), (8, 40, 3, 3))),
    "many-channels": (dense_block, ((1, 64, 32, 32), (64, 64, 3, 3), (64, 128, 3, 3))),
    "one-thrice": (one_thrice, ((4, 8, 5),)),
    "last": (softmax_of_all, ((6, 31), (6, 70))),
    "parts": (parts_of_all, ((2, 3, 8), (2, 5, 8))),
    "rotary": (rotary, ((2, 4, 33, 10),)),
    "result": (also_a_result, ((3, 2, 64, 64), (3, 5, 64, 64))),
    "empty": (also_a_result, ((3, 0, 6), (3, 5, 6))),
}


def _difference(got: Any, expected: Any) -> float:
    """The largest difference, over the largest expected value."""
    pairs = (
        [(got, expected)]
        if isinstance(got, Tensor)
        else zip(got, expected, strict=True)
    )
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, shapes = CASES[name]
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    compiled = frontend.trace(function)
    compiled(*inputs)
    got, expected = compiled(*inputs), function(*inputs)
    assert compiled.stats()["hits"] == 1
    assert _difference(got, expected) < 1e-5


@pytest.mark.sample(1)
@pytest.mark.parametrize("count", [65, pytest.param(200, marks=pytest.mark.whole)])
@pytest.mark.parametrize("make", [torch.cat, torch.stack])
def test_many_are_joined(count: int, make: Callable[..., Tensor]) -> None:
    """More than a group may have; what joins them reads what branches have made."""
    inputs = [torch.randn(4, 6) for _ in range(count)]
    compiled = frontend.trace(
        lambda *xs: make([x.softmax(-1) for x in xs], 1).sum(0) * 2
    )
    compiled(*inputs)
    expected = make([x.softmax(-1) for x in inputs], 1).sum(0) * 2
    assert _difference(compiled(*inputs), expected) < 1e-5
    assert compiled.stats()["hits"] == 1
    assert not compiled.records[0].compiled.report()["externals"]


def test_what_is_joined_is_connected() -> None:
    compiled = frontend.trace(
        lambda x, y: torch.cat([x.relu(), y.exp()], 1).clamp(max=2) * 3
    )
    x, y = torch.randn(1, 16, 64, 64), torch.randn(1, 48, 64, 64)
    compiled(x, y)
    (kernel,) = compiled.records[0].compiled.report()["groups"]
    assert kernel["operators"][-1].startswith("concat")
