"""Tiles that do not divide the extents, against eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from magweld import frontend


def floats(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def normed(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w, b)


def gated(x: Tensor, depth: Tensor, points: Tensor) -> Tensor:
    a, b = F.conv2d(F.conv2d(x, depth, padding=1, groups=x.shape[1]), points).chunk(
        2, dim=1
    )
    return a * torch.sigmoid(b)


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def two_results(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.exp(x)
    return y, y.sum(-1)


def written(x: Tensor, y: Tensor) -> Tensor:
    """The argument is read by the kernel whose result replaces it."""
    return x.copy_(torch.tanh(x @ y) + x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    # The reduction is walked in blocks, sums wait in the result.
    "product": (lambda a, b: torch.relu(a @ b), (floats(521, 601), floats(601, 523))),
    "norm": (normed, (floats(1009, 96), floats(96), floats(96))),
    "softmax": (lambda x: torch.softmax(x, -1), (floats(1021, 67),)),
    "transposed": (lambda x: x.t() * 2, (floats(509, 1031),)),
    "windows": (
        lambda x, w: torch.relu(F.conv2d(x, w, padding=1)),
        (floats(1, 16, 113, 113), floats(16, 16, 3, 3, seed=1)),
    ),
    "strided": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
        (floats(1, 3, 127, 131), floats(37, 3, 3, 3, seed=1)),
    ),
    "gated": (
        gated,
        (floats(1, 37, 53, 59), floats(37, 1, 3, 3), floats(74, 37, 1, 1)),
    ),
    "attention": (attended, tuple(floats(1, 4, 509, 32, seed=s) for s in range(3))),
    "two-results": (two_results, (floats(1021, 67),)),
    "half": (lambda x: (x * 2).relu(), (floats(1021, 127).half(),)),
    "whole-numbers": (lambda x: x * x - 3, (torch.arange(1021 * 127).view(1021, 127),)),
}
RAGGED = ("product", "norm", "softmax", "transposed", "windows", "gated", "two-results")


@pytest.fixture(autouse=True, params=[1, 2], ids=["one-thread", "two-threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_is_eager(name: str) -> None:
    eager, inputs = CASES[name]
    compiled = frontend.trace(eager)
    compiled(*inputs)
    expected = eager(*inputs)
    for _ in range(3):
        torch.testing.assert_close(compiled(*inputs), expected, rtol=1e-4, atol=1e-4)
    assert compiled.stats()["hits"] == 3
    if name in RAGGED:
        assert "ragged" in compiled.records[0].mlir("scheduled")


def test_an_argument_that_is_read_is_written() -> None:
    compiled = frontend.trace(written)
    x, y = floats(521, 521), floats(521, 521, seed=1)
    compiled(x.clone(), y)
    expected, given = written(x.clone(), y), x.clone()
    returned = compiled(given, y)
    assert returned is given
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)
