"""Slices, joins and cache updates: as few kernels as promised, values as in eager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import _pytree as pytree

from magweld import frontend
from magweld.api import compile_graph

Function = Callable[..., Any]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    values = torch.randn(shape, generator=generator) * 3
    return values > 0 if dtype == torch.bool else values.to(dtype)


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = (even * cos - odd * sin, even * sin + odd * cos)
    return torch.stack(pairs, -1).flatten(-2)


def write_rows(cache: Tensor, rows: Tensor) -> Tensor:
    cache = cache.clone()
    cache[:, 3:5] = rows
    return cache * 2


def gates(x: Tensor) -> Tensor:
    a, b, c, d = x.chunk(4, -1)
    return torch.cat((a.sigmoid(), b.relu(), c.tanh(), d * 2), -1)


def split_and_join(x: Tensor) -> Tensor:
    turned = torch.cat(x.split(4, 1)[::-1], 1)
    return torch.cat([part.relu() for part in turned.split(4, 1)], 1)


def split_unevenly(x: Tensor, y: Tensor) -> Any:
    a, b, c = x.split([1, 5, 7], 1)
    joined = torch.cat([c + 1, a, y, b], 1)
    return joined[:, 2:-3] - 1, joined[:, 0]


def branches(x: Tensor) -> Any:
    left, right = x.chunk(2, 1)
    joined = torch.cat([right, left], 1)
    return joined + x, joined.sum(1), joined


ROWS = numbers(5, 13)
# Name: function, arguments, and how many kernels it takes at most.
CASES: dict[str, tuple[Function, tuple[Tensor, ...], int]] = {
    "rope-halves": (
        rotate_halves,
        (numbers(2, 3, 7, 10), numbers(7, 10), numbers(7, 10)),
        1,
    ),
    "rope-pairs": (
        rotate_pairs,
        (numbers(2, 3, 7, 10), numbers(7, 5), numbers(7, 5)),
        1,
    ),
    "write-rows": (write_rows, (numbers(3, 9, 5), numbers(3, 2, 5)), 1),
    "gates": (gates, (numbers(7, 20),), 1),
    "split-and-join": (split_and_join, (numbers(3, 17),), 1),
    "joined-again": (lambda x: torch.cat(x.split(3, 1), 1).exp(), (ROWS,), 1),
    "split-unevenly": (split_unevenly, (ROWS, numbers(5, 2)), 3),
    "branches": (branches, (numbers(5, 12),), 3),
    "slices": (lambda x: x[:, 1:-1][:, 2:][1:, :5].exp(), (ROWS,), 1),
    "slice-of-result": (lambda x: (x * 2).exp()[1:3, 4:], (ROWS,), 1),
    "stack": (
        lambda x: torch.stack([x[:, i] * (i + 1) for i in range(5)], 1),
        (numbers(4, 5, 3),),
        1,
    ),
    "stack-of-unbind": (lambda x: torch.stack(x.unbind(1), 1) + 1, (ROWS,), 1),
    "stack-of-unbind-turned": (lambda x: torch.stack(x.unbind(1), 0) + 1, (ROWS,), 2),
    "stack-last": (lambda x: torch.stack(x.unbind(0), -1) + 1, (ROWS,), 2),
    "cat-of-cats": (
        lambda x, y: torch.cat([torch.cat([x, y], 1), x], 1) * 2,
        (ROWS, numbers(5, 2)),
        1,
    ),
    "cat-rows": (lambda x, y: torch.cat([x, y]).relu(), (ROWS, numbers(3, 13)), 1),
    "empty-part": (lambda x: torch.cat([x[:, :0], x, x[:0].t()[:5], x], 1), (ROWS,), 1),
    "grown-cache": (
        lambda k, n: (joined := torch.cat([k, n], 2), joined.sum(-1)),
        (numbers(1, 2, 9, 4), numbers(1, 2, 1, 4)),
        2,
    ),
    "roll": (lambda x: torch.roll(x, (3, -1), (1, 0)) + 1, (ROWS,), 1),
    "roll-flat": (lambda x: torch.roll(x, 17) + 1, (ROWS,), 2),
    "roll-none": (lambda x: torch.roll(x, 13, 1) + 1, (ROWS,), 1),
    "flip": (lambda x: x.flip(0, 1) * 2, (ROWS,), 1),
    "pad-then-slice": (lambda x: F.pad(x, (2, 3))[:, 1:-1] * 2, (ROWS,), 2),
    "two-joins": (
        lambda x, y: torch.cat([x, y], 1) * torch.cat([y, x], 1),
        (ROWS, numbers(5, 2)),
        1,
    ),
    "join-of-step": (lambda x: torch.cat([x[:, 1::2], x[:, ::2]], 1) * 2, (ROWS,), 3),
    "soft-maximum": (lambda x, y: torch.cat([x, y], 1).softmax(1), (ROWS, ROWS), 3),
}


# What moves elements alone, of any type.
MOVES: dict[str, Function] = {
    "join": lambda x: torch.cat([x[:, 3:], x[:1].expand(5, -1), x[:, :3]], 1),
    "rejoin": lambda x: torch.cat(x.split([2, 3, 8], 1)[::-1], 1)[:, 1:12],
    "step": lambda x: torch.stack([x[:, :12:2], x[:, 1:12:2]], -1).flatten(1),
    "turn": lambda x: torch.stack(x.unbind(1), -1).flip(0)[1:, ::3],
    "rolled": lambda x: torch.cat([x.roll(4, 1), x.roll(-2, 0)]).t(),
    "written": lambda x: torch.slice_scatter(x, x[:, :2], 1, 6, 8),
}
DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.bool,
)


def compare(function: Function, *arguments: Tensor) -> Counter[str]:
    """Compile a function, compare it with eager, and count its steps by kind."""
    made: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        made.append(compile_graph(graph, inputs))
        return made[-1]

    traced = frontend.trace(function, backend=backend)
    with torch.no_grad():
        expected = pytree.tree_leaves(function(*arguments))
        for _ in range(3):
            actual = pytree.tree_leaves(traced(*arguments))
            for mine, theirs in zip(actual, expected, strict=True):
                assert (mine.dtype, mine.stride()) == (theirs.dtype, theirs.stride())
                torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    (compiled,) = made
    (tile_graph,) = compiled.report()["graphs"]
    return Counter(step["kind"] for step in tile_graph["steps"])


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    function, arguments, most = CASES[name]
    steps = compare(function, *arguments)
    assert steps.keys() <= {"generated"}
    assert steps["generated"] <= most


@pytest.mark.sample(9)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, dtype: torch.dtype) -> None:
    compare(MOVES[name], numbers(5, 13, dtype=dtype))
