"""Numbers beside tensors become elements as in eager: of other types, out of range.

One graph a type holds all operators with all numbers that torch takes, so that few
compilations do.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from extremes import COUNT, extremes
from test_operators_at_extremes import problem
from torch import Tensor, fx

from magweld.api import compile_graph

MASK = torch.arange(COUNT) % 3 == 0
PLACES = torch.tensor([0, 4, 2])
NUMBERS = (True, 2, -1, 300, 2**31, 2**53 + 1, 0.0, -0.0, 0.5, -2.7, 70000.0, 1e-46)
ENDS = (math.inf, math.nan)

Function = Callable[[Tensor, Any], Tensor]

OPERATORS: dict[str, Function] = {
    "full": torch.full_like,
    "full truths": lambda x, n: torch.full_like(x, n, dtype=torch.bool),
    "full bytes": lambda x, n: torch.full_like(x, n, dtype=torch.uint8),
    "new": lambda x, n: x.new_full((3,), n),
    "fill": torch.fill,
    "masked fill": lambda x, n: x.masked_fill(MASK, n),
    "where": lambda x, n: torch.where(MASK, x, n),
    "where not": lambda x, n: torch.where(MASK, n, x),
    "where either": lambda x, n: torch.where(MASK, n, n),
    "where row": lambda x, n: torch.where(MASK.view(4, 8), x[:8], n),
    "index fill": lambda x, n: x.index_fill(0, PLACES, n),
    "scatter": lambda x, n: x.scatter(0, PLACES, n),
    "masked scatter": lambda x, n: x.masked_scatter(MASK, torch.full_like(x, n)),
    "pad": lambda x, n: F.pad(x, (1, 2), value=n),
    "add": lambda x, n: x + n,
    "subtract": lambda x, n: n - x,
    "multiply": lambda x, n: x * n,
    "and": lambda x, n: x & n,
    "equal": lambda x, n: x == n,
    "less": lambda x, n: x < n,
    "greater": lambda x, n: n > x,
    "at most": lambda x, n: x <= n,
    "not equal": lambda x, n: x != n,
    "at least": lambda x, n: x.clamp(n),
    "no more than": lambda x, n: x.clamp(max=n),
    "between": lambda x, n: x.clamp(True, n),
    "is in": torch.isin,
}


GENERATED = (
    *("full", "full truths", "where", "where not", "where either", "where row"),
    *("equal", "less", "greater", "at most", "not equal"),
    *("at least", "no more than", "between"),
)


def taken(x: Tensor, numbers: tuple[Any, ...]) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return the operators with the numbers that torch takes for a type."""
    found: dict[str, Callable[[Tensor], Tensor]] = {}
    for name, function in OPERATORS.items():
        for number in numbers:
            with contextlib.suppress(RuntimeError, TypeError):
                function(x, number)
                found[f"{name} {number!r}"] = lambda x, f=function, n=number: f(x, n)
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int32, torch.float32], ids=str
)
def test_numbers_become_elements(dtype: torch.dtype, whole: bool) -> None:
    if not whole and dtype in (torch.uint8, torch.int32):
        pytest.skip("with --whole")
    narrow = dtype is torch.uint8
    x = torch.arange(COUNT, dtype=dtype) * 8 if narrow else extremes(dtype)
    functions = taken(x, (*NUMBERS, *ENDS) if whole else NUMBERS)
    assert len(functions) > 80

    def every(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(x) for function in functions.values())

    results = compile_graph(fx.symbolic_trace(every), [x])(x.clone())
    wrong = {}
    for (name, function), found in zip(functions.items(), results, strict=True):
        difference = problem(found, function(x))
        if difference:
            wrong[name] = difference
    assert wrong == {}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int32, torch.int64, torch.float64], ids=str
)
def test_no_number_leaves_an_operator_to_torch(dtype: torch.dtype) -> None:
    x = extremes(dtype)
    functions = {
        name: function
        for name, function in taken(x, (True, -1, 2**31, -(2**40), 0.5, -0.0)).items()
        if name.rpartition(" ")[0] in GENERATED
    }
    graph = fx.symbolic_trace(lambda x: tuple(f(x) for f in functions.values()))
    compiled = compile_graph(graph, [x])
    assert compiled.imported.externals == {}  # type: ignore[attr-defined]
    for function, found in zip(functions.values(), compiled(x.clone()), strict=True):
        assert not problem(found, function(x))


@pytest.mark.parametrize(
    "left", [torch.bool, torch.int32, torch.float16, torch.float32]
)
@pytest.mark.parametrize("right", [torch.bool, torch.int64, torch.bfloat16])
def test_choices_between_types(left: torch.dtype, right: torch.dtype) -> None:
    def choose(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return torch.where(x > 1, x, y), torch.where(x > 1, y, x)

    x, y = torch.tensor([1, 3, 0, 2047]).to(left), torch.tensor([2, -7, 0, 9]).to(right)
    compiled = compile_graph(fx.symbolic_trace(choose), [x, y])
    assert compiled.imported.externals == {}  # type: ignore[attr-defined]
    for found, expected in zip(compiled(x, y), choose(x, y), strict=True):
        assert found.dtype is expected.dtype
        assert torch.equal(found, expected)
