"""Tensors whose elements have gaps are filled with the numbers that eager draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

FILLS: dict[str, Callable[[Tensor], Any]] = {
    "normal_": lambda y: y.normal_(),
    "normal_ of a mean": lambda y: y.normal_(2.0, 3.0),
    "uniform_": lambda y: y.uniform_(-1, 1),
    "bernoulli_": lambda y: y.bernoulli_(0.3),
    "exponential_": lambda y: y.exponential_(2.0),
    "cauchy_": lambda y: y.cauchy_(),
    "geometric_": lambda y: y.geometric_(0.4),
    "log_normal_": lambda y: y.log_normal_(),
    "random_": lambda y: y.random_(9),
}
PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "steps": lambda x: x[..., 0],
    "turned": lambda x: x[..., 1].t(),
    "columns": lambda x: x.view(5, 20)[:, 1:-1],
    "all": lambda x: x,
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("part", PARTS)
def test_fills_draw_as_eager_does(fill: str, part: str) -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 2
        FILLS[fill](PARTS[part](y))
        return y + 1

    fast = trace(program, compile="now")
    for number in range(3):
        found = []
        for function in (fast, program):
            torch.manual_seed(number)
            found.append((function(torch.ones(10, 5, 2)), torch.rand(2)))
        torch.testing.assert_close(*found)
    assert fast.stats()["hits"] == 2, fast.explain()
