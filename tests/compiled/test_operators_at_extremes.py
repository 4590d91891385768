"""Every element-wise operator on the ends of its types gives what eager gives.

One graph a type holds all operators that torch takes, so that few compilations do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from extremes import BINARY, UNARY, extremes, second
from torch import Tensor, fx

from magweld.api import compile_graph
from magweld.diagnostics import UnsupportedError
from magweld.importer.importer import import_graph

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool)
Function = Callable[[Tensor, Tensor], Tensor]


def of_first(function: Callable[[Tensor], Any]) -> Function:
    return lambda x, y: function(x)


def taken(x: Tensor, y: Tensor) -> dict[str, Function]:
    """Return the operators that torch takes for a type."""
    every = {name: of_first(function) for name, function in UNARY.items()}
    every.update({f"{name} of two": f for name, f in BINARY.items()})
    found = {}
    for name, function in every.items():
        with contextlib.suppress(RuntimeError, TypeError):
            function(x, y)
            found[name] = function
    return found


def graph_of(functions: Iterable[Function]) -> fx.GraphModule:
    """Return a graph that returns what all functions do."""

    def every(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(a, b) for function in functions)

    return fx.symbolic_trace(every)


def runs_without_data(function: Function, x: Tensor, y: Tensor) -> bool:
    """Torch is stricter about the types of some operators there."""
    try:
        import_graph(graph_of([function]), [x, y])
    except UnsupportedError as error:
        if error.id != "graph-not-runnable":
            raise
        return False
    return True


def problem(found: Tensor, expected: Tensor) -> str:
    """Say how two results differ; the signs of zeros count, roundings do not."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {found.shape}, expected {expected.dtype}"
    if not expected.is_floating_point():
        wrong = found != expected
    else:
        tolerance = 1e-5 if expected.dtype is torch.float32 else 1e-11
        near = (found - expected).abs() <= tolerance * expected.abs()
        wrong = ~(near | (found == expected) | (found.isnan() & expected.isnan()))
        wrong |= (expected == 0) & (found.signbit() != expected.signbit())
    pairs = torch.stack([found.double(), expected.double()])[:, wrong]
    return str(pairs.t().tolist()[:5]) if wrong.any() else ""


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operators_at_extremes(dtype: torch.dtype, whole: bool) -> None:
    x = extremes(dtype)
    y = second(x)
    every = taken(x, y)
    refused = {"shift-left", "shift-right"} if dtype is torch.bool else set()
    # Any other one that is not taken is an error of the whole graph.
    functions = {
        name: function
        for name, function in every.items()
        if name not in refused or runs_without_data(function, x, y)
    }
    assert len(functions) > 40
    if dtype is torch.int64 and not whole:
        # What they become differs from that of the narrower type in the type alone.
        functions = dict([*functions.items()][::2])
    compiled = compile_graph(graph_of(functions.values()), [x, y])
    results = compiled(x.clone(), y.clone())
    wrong = {}
    for (name, function), found in zip(functions.items(), results, strict=True):
        difference = problem(found, function(x, y))
        if difference:
            wrong[name] = difference
    assert wrong == {}


def test_differences_are_noticed() -> None:
    x = extremes(torch.float32)
    assert problem(x, x) == ""
    assert "-0.0" in problem(x.abs().clamp(min=0), F.relu(x))
    assert problem(x.nan_to_num(), x)
    whole = extremes(torch.int32)
    assert "16777217" in problem(whole.float().int(), whole)
    assert problem(whole.long(), whole)


@pytest.mark.parametrize("shift", [0.0, 3.3, 1e3, -1e4])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_norms_of_shifted_data(shift: float, spread: float) -> None:
    """A large mean costs accuracy, but no more than a few roundings of that mean."""

    def norms(x: Tensor) -> tuple[Tensor, ...]:
        image = x.view(2, 8, 6, 10)
        return (
            F.layer_norm(x, (60,)),
            F.group_norm(image, 4),
            F.instance_norm(image),
            F.batch_norm(image, None, None, training=True),
            x.softmax(-1),
            x.var(-1),
            x.mean(-1),
        )

    generator = torch.Generator().manual_seed(1)
    x = torch.randn(16, 60, generator=generator) * spread + shift
    found = compile_graph(fx.symbolic_trace(norms), [x])(x.clone())
    # What a rounding of the mean becomes when divided by the least deviation.
    scale = max(spread, 1e-5**0.5)
    allowed = 1e-5 + 8 * abs(shift) * torch.finfo(torch.float32).eps / scale
    for mine, exact in zip(found, norms(x.double()), strict=True):
        largest = (mine - exact).abs().max().item()
        assert largest <= allowed * max(1.0, exact.abs().max().item()), largest
