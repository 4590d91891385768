"""Writes of hits in place are counted, so that autograd refuses what eager refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.frontend import trace

Program = Callable[[Tensor, Tensor], object]

PROGRAMS: dict[str, Program] = {
    "twice": lambda x, b: b.add_(1).mul_(2),
    "nothing": lambda x, b: b.add_(0),
    "itself": lambda x, b: b.copy_(b),
    "a part": lambda x, b: b[0].add_(1),
    "no element": lambda x, b: b[:0].add_(1),
    "elements": lambda x, b: b.masked_fill_(b > 100, 0),
    "the same": lambda x, b: b.fill_(0),
    "both": lambda x, b: (b.add_(x), x.add_(b)),
    "result": lambda x, b: torch.add(x, 1, out=b),
    "list": lambda x, b: torch._foreach_add_([b, x], 1),
    "list of products": lambda x, b: torch._foreach_addcmul_([b], [x], [x]),
    "activation": lambda x, b: F.relu_(b),
    "draws": lambda x, b: b.uniform_(),
    "without counting": lambda x, b: b.data.add_(1),
    "detached": lambda x, b: b.detach().add_(1),
    "nothing at all": lambda x, b: x + b,
}


def outcome(program: Program, trains: bool, x: Tensor) -> tuple[bool, ...]:
    """Return which arguments were written as they count it, and whether torch minds."""
    state, weight = torch.zeros(3, 4), torch.ones(3, 4, requires_grad=True)
    saved = weight * state * x
    program(x * weight if trains else x, state)
    try:
        saved.sum().backward()
    except RuntimeError:
        return x._version > 0, state._version > 0, True
    return x._version > 0, state._version > 0, False


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_writes_are_counted_as_in_eager(name: str, trains: bool) -> None:
    def program(x: Tensor, state: Tensor) -> Tensor:
        PROGRAMS[name](x.detach() if trains else x, state)
        return x * 2

    fast = trace(program)
    for _ in range(3):
        x = torch.randn(3, 4)
        expected = outcome(program, trains, x.clone())
        assert outcome(fast, trains, x.clone()) == expected
    refused = [item.id for item in fast.breaks] == ["tensor-write"]
    assert fast.stats()["hits"] == 2 or refused, fast.explain()
