"""Zeros have the signs that eager gives them, beside infinities and nan.

Torch computes whole vectors of elements in one way and what is left of a tensor in
another, and softshrink, maximum, minimum and lerp give zeros other signs in these.
Tensors here have whole vectors alone, or none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from extremes import BINARY, INFINITY, NAN, UNARY
from test_operators_at_extremes import problem
from torch import Tensor, fx

from magweld.api import compile_graph

VALUES = (0.0, -0.0, 1.0, -1.0, 0.25, -0.5, 2.0, -3.0, INFINITY, -INFINITY, NAN, 1e-30)
SHORT = (0.0, -0.0, -0.25)

OF_ONE: dict[str, Callable[[Tensor], Any]] = {
    **{name: f for name, f in UNARY.items() if "rows" not in name},
    "all of elu": F.elu,
    "add nothing": lambda x: x + 0,
    "add a negative zero": lambda x: x + -0.0,
    "clamp at a negative zero": lambda x: x.clamp(min=-0.0),
    "clamp below zero": lambda x: x.clamp(max=0.0),
    "divide by infinity": lambda x: x / -INFINITY,
    "expm1": torch.expm1,
    "fill with a negative zero": lambda x: x.masked_fill(x > 0, -0.0),
    "greater of zero": lambda x: torch.maximum(x, torch.tensor(0.0, dtype=x.dtype)),
    "lesser of zero": lambda x: torch.minimum(x, torch.tensor(-0.0, dtype=x.dtype)),
    "log1p": torch.log1p,
    "multiply by zero": lambda x: x * 0,
    "pad with a negative zero": lambda x: F.pad(x, (1, 1), value=-0.0),
    "power of minus three": lambda x: x**-3,
    "rectify from a negative zero": lambda x: F.threshold(x, -0.0, -0.0),
    "root": lambda x: x**0.5,
    "round to tenths": lambda x: torch.round(x, decimals=1),
    "selu": F.selu,
    "shrink a lot": lambda x: F.softshrink(x, 2.0),
    "shrink nothing": lambda x: F.softshrink(x, 0.0),
    "subtract a negative zero": lambda x: x - -0.0,
    "subtract from nothing": lambda x: 0 - x,
    "subtract from zeros": lambda x: torch.zeros_like(x) - x,
    "tanhshrink": F.tanhshrink,
    "zero elsewhere": lambda x: torch.where(x > 0, x, -0.0),
}
OF_TWO: dict[str, Callable[[Tensor, Tensor], Any]] = {
    **BINARY,
    "add nothing of it": lambda x, y: torch.add(x, y, alpha=0),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=-1),
    "lerp": lambda x, y: torch.lerp(x, y, 0.25),
    "lerp beyond the middle": lambda x, y: torch.lerp(x, y, 0.75),
    "negative product": lambda x, y: -(x * y),
    "negative sum": lambda x, y: -x - y,
    "remainder": torch.remainder,
}
OF_ROWS: dict[str, Callable[[Tensor], Any]] = {
    "cumulative sum": lambda x: x.cumsum(-1),
    "least": lambda x: x.amin(-1),
    "largest": lambda x: x.amax(-1),
    "mean": lambda x: x.mean(-1),
    "product": lambda x: x.prod(-1),
    "product of columns": lambda x: x.prod(0),
    "products": lambda x: x.t() @ torch.ones(6, 3),
    "sum": lambda x: x.sum(-1),
    "sum of all": lambda x: x.sum().view(1),
    "sum of columns": lambda x: x.sum(0),
}


def differences(
    functions: Mapping[str, Callable[..., Any]], *inputs: Tensor
) -> dict[str, str]:
    """Return how compiled operators differ from eager ones, by name."""
    taken = {}
    for name, function in functions.items():
        with contextlib.suppress(RuntimeError):
            function(*inputs)
            taken[name] = function

    def one(x: Tensor) -> tuple[Any, ...]:
        return tuple(function(x) for function in taken.values())

    def two(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        return tuple(function(x, y) for function in taken.values())

    graph = fx.symbolic_trace(one if len(inputs) == 1 else two)
    found = compile_graph(graph, inputs)(*(tensor.clone() for tensor in inputs))
    pairs = zip(taken.items(), found, strict=True)
    named = {name: problem(mine, f(*inputs)) for (name, f), mine in pairs}
    return {name: text for name, text in named.items() if text}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_elements(dtype: torch.dtype) -> None:
    x = torch.tensor(VALUES, dtype=dtype)
    assert differences(OF_ONE, x.repeat(16)) == {}
    left, right = x.repeat_interleave(len(VALUES)), x.repeat(len(VALUES))
    assert differences(OF_TWO, left, right) == {}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
def test_elements_that_fill_no_vector(dtype: torch.dtype) -> None:
    x = torch.tensor(SHORT, dtype=dtype)
    exact = "softshrink", "shrink a lot", "relu", "trunc", "hardshrink", "neg"
    extremes = "greater of zero", "lesser of zero"
    assert differences({name: OF_ONE[name] for name in (*exact, *extremes)}, x) == {}
    both = {name: OF_TWO[name] for name in ("maximum", "minimum", "add", "mul", "sub")}
    assert differences(both, x, x.flip(0)) == {}
    assert differences(both, x[:2], x[1:]) == {}


@pytest.mark.parametrize("extent", [2, 5, 16, 40])
def test_reductions_of_negative_zeros(extent: int) -> None:
    for zeros in (
        torch.full((6, extent), -0.0),
        torch.zeros(6, extent),
        torch.full((6, extent), -0.0).index_fill(1, torch.tensor([0]), -1.0),
    ):
        assert differences(OF_ROWS, zeros) == {}
