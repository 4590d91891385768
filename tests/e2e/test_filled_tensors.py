"""Reductions of tensors that are one number everywhere: nothing else has their size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: (x * 1).zero_().sum(1),
    "exponentials": lambda x: torch.ones(4, 300).exp().sum(1) + x[:, 0],
    "all of it": lambda x: torch.full((3, 5, 7), 1.5).sum() + x,
    "largest": lambda x: torch.full((7, 6), 2.5).amax(0) * x[0],
    "two": lambda x: (torch.zeros_like(x) + torch.ones(6)).sum(0),
    "softmax": lambda x: torch.zeros_like(x).softmax(-1) + x,
    "one row": lambda x: torch.ones(1, 6).sum(0) * x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_reductions_of_filled_tensors_compile(name: str) -> None:
    program = PROGRAMS[name]
    fast = trace(program)
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(4, 6)
            torch.testing.assert_close(fast(x), program(x.clone()))
    assert fast.stats()["hits"] == 1
    assert fast.records[0].compiled is not None
    assert not fast.breaks
