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


def outcome(program: Program, trains: bool, x: Tensor) -> tuple[int, ...]:
    """Return how many writes the arguments count, and whether torch minds."""
    state, weight = torch.zeros(3, 4), torch.ones(3, 4, requires_grad=True)
    saved = weight * state * x
    program(x * weight if trains else x, state)
    try:
        saved.sum().backward()
    except RuntimeError:
        return x._version, state._version, True
    return x._version, state._version, False


@pytest.mark.sample(11)
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


def written(x: Tensor, *writes: Callable[[Tensor], object]) -> Tensor:
    result = x * 2
    for write in writes:
        write(result)
    return result


def parts(x: Tensor) -> list[Tensor]:
    result = written(x, lambda y: y[0].fill_(1))
    return [result, result[1:], result.t()]


RESULTS: dict[str, Callable[[Tensor], Tensor | list[Tensor]]] = {
    "new": lambda x: x * 2,
    "written": lambda x: written(x, lambda y: y.add_(1)),
    "twice": lambda x: written(x, lambda y: y.add_(1), lambda y: y[0].zero_()),
    "parts": parts,
    "unwritten parts": lambda x: [*(x * 2).split(1)],
    "gaps": lambda x: (x * 2)[:, 1:3],
    "written gaps": lambda x: (x * 2)[:, 1:3].add_(1),
    "turned": lambda x: written(x, lambda y: y.relu_()).t(),
    "without counting": lambda x: written(x, lambda y: y.data.add_(1)),
    "detached": lambda x: written(x, lambda y: y.detach().add_(1)),
    "filled": lambda x: torch.zeros(3, 4).fill_(2).mul_(x.detach()),
    "activation": lambda x: F.relu(x + 1, inplace=True),
    "several": lambda x: [x + 1, (x * 2).add_(1), (x * 3).add_(1).add_(1)],
}


def ended(
    program: Callable[[Tensor], Tensor | list[Tensor]], x: Tensor
) -> tuple[list[int], list[Tensor]]:
    """Return what results count, and what they and the gradient hold."""
    results = program(x)
    results = [results] if isinstance(results, Tensor) else results
    counted = [result._version for result in results]
    if results[0].requires_grad:
        torch.stack([result.sum() for result in results]).sum().backward()
    held = [result.detach() for result in results]
    return counted, held if x.grad is None else [*held, x.grad]


@pytest.mark.sample(9)
@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_results_count_the_writes_of_eager(name: str, trains: bool) -> None:
    program = RESULTS[name]
    fast = trace(program, compile="now")
    for _ in range(4):
        x = torch.randn(3, 4)
        expected, theirs = ended(program, x.clone().requires_grad_(trains))
        found, mine = ended(fast, x.clone().requires_grad_(trains))
        assert found == expected
        torch.testing.assert_close(mine, theirs)
    assert fast.stats()["hits"] == 3, fast.explain()
