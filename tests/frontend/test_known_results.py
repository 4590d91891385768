"""Calls on symbolic sizes: an equal one gives what the first has given, made anew."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from magweld.frontend.lifting.known_results import KnownResults

Fakes = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@pytest.fixture
def fakes() -> Iterator[Fakes]:
    """Two fake tensors and one of f64; each of their sizes is a symbol of its own."""
    mode = FakeTensorMode(shape_env=ShapeEnv(duck_shape=False))

    def make(name: str, dtype: torch.dtype) -> torch.Tensor:
        context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
        real, source = torch.empty(5, 4, dtype=dtype), ConstantSource(name)
        return mode.from_tensor(real, symbolic_context=context, source=source)

    made = make("x", torch.float32), make("y", torch.float32), make("z", torch.float64)
    with mode:
        yield made


def runs(function: Callable[..., Any], *calls: tuple[Any, ...]) -> tuple[int, Any]:
    """Return how often a function has run for some calls, and the results."""
    known, count = KnownResults(), 0

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return function(*args)

    results = [known.call("function", counted, args, {}) for args in calls]
    return count, results


def test_an_equal_call_is_known(fakes: Fakes) -> None:
    x = fakes[0]
    count, (first, second) = runs(torch.relu, (x,), (torch.empty_like(x),))
    assert count == 1
    assert first is not second
    assert first.untyped_storage()._cdata != second.untyped_storage()._cdata
    assert str(first.shape) == str(second.shape)
    assert (first.dtype, first.stride()) == (second.dtype, second.stride())


def test_results_in_a_tuple_are_known(fakes: Fakes) -> None:
    x = fakes[0]
    count, results = runs(lambda x: (x + 1, None, x.sum(-1)), (x,), (x,))
    assert count == 1
    assert results[1][1] is None
    assert str(results[0][2].shape) == str(results[1][2].shape)


def test_other_forms_are_other_calls(fakes: Fakes) -> None:
    x, y, z = fakes
    assert runs(torch.relu, (x,), (y,), (x.t(),), (z,))[0] == 4
    assert isinstance(x.shape[0], torch.SymInt)
    assert runs(torch.mul, (x, 2), (x, 2.0), (x, True), (x, x), (x, x * 1))[0] == 5
    assert runs(torch.mul, (x, 0.0), (x, -0.0))[0] == 2
    assert runs(torch.add, (x, x.shape[0]), (x, x.shape[1]))[0] == 2


@pytest.mark.parametrize(
    "function",
    [
        torch.Tensor.t,
        torch.Tensor.relu_,
        lambda x: (x + 1, x),
        lambda x: (x + 1).unbind(1),
        lambda x: torch.ones(3, requires_grad=True),
        torch.Tensor.dim,
        torch.Tensor.nonzero,
    ],
)
def test_what_is_not_new_is_called_each_time(fakes: Fakes, function: Any) -> None:
    """Views, arguments, leaves, numbers, and sizes that follow from values."""
    x = fakes[0]
    assert runs(function, (x,), (x,))[0] == 2


def test_what_may_switch_a_mode_forgets(fakes: Fakes) -> None:
    known, count = KnownResults(), 0

    def add(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return x + 1

    for function in (add, add, torch.is_grad_enabled, add):
        args = (fakes[0],) if function is add else ()
        known.call(function, function, args, {})
    assert count == 2


_LIFTED = """
import sys, torch
from magweld.frontend import trace
fast = trace(lambda x: x.relu().mean(0), backend="eager")
for n in range(4):
    fast(torch.ones(n + 2, 3))
assert fast.stats()["hits"] == 2
assert "torch.export._trace" not in sys.modules
"""


def test_lifting_imports_no_compiler() -> None:
    command = [sys.executable, "-c", _LIFTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_further_run_takes_the_same_objects(fakes: Fakes) -> None:
    x, y, _ = fakes
    known, count = KnownResults(), 0

    def run() -> list[Any]:
        nonlocal count

        def call(function: Callable[..., Any], *args: Any, writes: bool = False) -> Any:
            def counted(*args: Any) -> Any:
                nonlocal count
                count += 1
                return function(*args)

            return known.call(function, counted, args, {}, writes=writes)

        first, second = call(torch.add, x, 1), call(torch.add, x, 1)
        view = call(torch.Tensor.t, second)
        written = call(torch.Tensor.relu_, view)
        part = call(operator.getitem, y, (..., slice(0, y.shape[1])))
        call(operator.setitem, part, 0, 1.0, writes=True)
        return [first, second, view, written, part]

    before = run()
    assert count == 5
    assert before[0] is not before[1]
    assert before[2] is before[3]
    known.begin()
    assert list(map(id, run())) == list(map(id, before))
    assert count == 5
    assert known.is_stable


@pytest.mark.parametrize(
    "function", [torch.Tensor.t_, lambda x: x.unsqueeze_(0), torch.Tensor.dim]
)
def test_what_changes_forms_or_modes_is_for_one_run(
    fakes: Fakes, function: Callable[..., Any]
) -> None:
    x, known = fakes[0], KnownResults()
    known.call("add", torch.add, (x, 1), {})
    known.call("function", function, (x,), {})
    assert not known.is_stable
