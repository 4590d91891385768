"""Operators on tensors that torch writes in Python are recorded as any other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from magweld.frontend.traced import trace

OPERATORS: dict[str, Callable[[Any], Any]] = {
    "power": lambda x: x**2,
    "reflected power": lambda x: 2**x,
    "reflected difference": lambda x: 1.0 - x,
    "reflected quotient": lambda x: 2 / x,
    "floor": lambda x: x // 2 + 2 // x,
    "remainder": lambda x: x % 2 + 2 % x,
    "signs": lambda x: (-x, +x, abs(x)),
    "comparisons": lambda x: (x == 1, 1 != x, 0 < x, ~(x > 0)),
    "length": lambda x: x * len(x),
    "function": lambda x: operator.pow(x, 2),
    "elements": lambda x: [part + 1 for part in x],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_recorded(checker: Any, name: str) -> None:
    check = checker(OPERATORS[name])
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"


LOOKING: dict[str, Callable[[Any, Any], Any]] = {
    "one_hot": lambda x, i: torch.nn.functional.one_hot(i, 4),
    "one_hot of as many": lambda x, i: torch.nn.functional.one_hot(i),
    "element": lambda x, i: x[i] + x[:, i],
    "store": lambda x, i: x.clone().index_fill(0, i, 0.0)[i],
    "full": lambda x, i: torch.full((2,), i) + x[0, 0],
    "slice": lambda x, i: x[:i],
    "range": lambda x, i: torch.arange(i),
}


@pytest.mark.parametrize("name", LOOKING)
def test_operator_that_looks_at_values(checker: Any, name: str) -> None:
    check = checker(LOOKING[name])
    check(torch.randn(4, 4), torch.tensor(1))
    check(torch.randn(4, 4), torch.tensor(2))
    assert check(torch.randn(4, 4), torch.tensor(3)) == "hit"


def test_an_element_is_a_view(checker: Any) -> None:
    def program(x: Any, i: Any) -> Any:
        y = x.clone()
        y[i] = 0.0
        row = y[i]
        row += 5.0
        return y, row

    check = checker(program)
    assert check(torch.randn(4, 4), torch.tensor(1)) == "record"
    assert check(torch.randn(4, 4), torch.tensor(2)) == "hit"


# A size is the shape of the new tensor; the tuple of its numbers would be its elements.
OF_SIZES: dict[str, Callable[[Any], Any]] = {
    "new": lambda x: x.new(x.size()).zero_() + x,
    "new of some dimensions": lambda x: x.new(x.size()[:1]).zero_(),
    "new of numbers": lambda x: x.new(tuple(x.size())),
    "FloatTensor": lambda x: torch.FloatTensor(x.size()).fill_(1) + x,
    "Tensor": lambda x: torch.Tensor(x.shape).zero_() + x,
    "Tensor of no dimensions": lambda x: torch.Tensor(x.sum().size()).zero_() + x,
}


@pytest.mark.parametrize("name", OF_SIZES)
def test_a_tensor_made_of_a_size(checker: Any, name: str) -> None:
    check = checker(OF_SIZES[name])
    for rows in (4, 4, 5, 5, 6, 6, 7):
        check(torch.randn(rows, 3))


def test_a_new_tensor_of_a_changing_size_is_lifted(checker: Any) -> None:
    check = checker(OF_SIZES["new"])
    ways = [check(torch.randn(rows, 3)) for rows in (4, 5, 6, 7, 8)]
    assert ways[-1] == "hit"


RANGES: dict[str, Callable[[Any], Any]] = {
    "of a value": lambda x: torch.range(0, x.max()) + x.sum(),
    "of a size": lambda x: torch.range(0, x.shape[0]),
    "by name": lambda x: torch.range(start=1, end=3, step=0.5) * x.sum(),
}


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("name", RANGES)
def test_an_operator_that_torch_shows_to_no_mode(name: str) -> None:
    fast: Any = trace(RANGES[name], backend="eager")
    for count in (3, 4, 3, 4, 5):
        x = torch.arange(float(count))
        assert torch.equal(fast(x), RANGES[name](x))
    assert fast.stats()["hits"] > 0
    assert fast.stats()["breaks"] == 0, fast.explain()


class Named(TorchFunctionMode):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_what_it_refuses_leaves_the_modes_where_they_are() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        try:
            return torch.range(5, x.min())
        except RuntimeError:
            return x + 1

    fast: Any = trace(program, backend="eager")
    for _ in range(3):
        assert torch.equal(fast(torch.zeros(2)), torch.ones(2))
    with Named() as mode:
        assert torch.overrides._get_current_function_mode() is mode
        torch.zeros(1)
    assert mode.seen == ["zeros"]
