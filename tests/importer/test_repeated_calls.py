"""Calls without data that are like calls before are not run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.importer import observation
from magweld.importer.observation import observe

Calls = list[str]


class _Counter(TorchDispatchMode):
    """Notes the operators that run."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self._calls.append(func.name())
        return func(*args, **(kwargs or {}))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return the operators that an observation runs."""
    found: Calls = []
    monkeypatch.setattr(observation, "_EagerStrides", lambda: _Counter(found))
    return found


def graph_of(build: Callable[[fx.Graph, fx.Node], Any]) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return fx.GraphModule({}, graph)


X = torch.randn(3, 4)
GATE = torch.randn(8, 4)


def cells(graph: fx.Graph, x: fx.Node) -> Any:
    weight = graph.call_function(torch.zeros, (16, 4))
    state: tuple[Any, Any] = (x, x)
    for _ in range(5):
        made = graph.call_function(torch.lstm_cell, (x, state, weight, weight))
        state = tuple(graph.call_method("__getitem__", (made, n)) for n in (0, 1))
    return state


def test_a_repeated_cell_runs_once(calls: Calls) -> None:
    found = observe(graph_of(cells), [X])
    assert calls.count("aten::tanh") + calls.count("aten::tanh_") == 2
    first, second = found.outputs
    assert first.shape == second.shape == (3, 4)
    assert first.storage != second.storage


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("type of a number", (1,), (1.0,)),
        ("number", (2,), (3,)),
        ("truth", (1,), (True,)),
        ("sign of zero", (0.0,), (-0.0,)),
    ],
)
def test_other_constants_are_other_calls(
    calls: Calls, name: str, first: Any, second: Any
) -> None:
    def build(graph: fx.Graph, x: fx.Node) -> Any:
        return [graph.call_function(torch.mul, (x, *n)) for n in (first, second)]

    observe(graph_of(build), [X.long()])
    assert calls.count("aten::mul.Tensor") == 2, name


def test_views_and_results_that_are_operands_are_made_again(calls: Calls) -> None:
    def build(graph: fx.Graph, x: fx.Node) -> Any:
        made = graph.call_function(torch.exp, (x,))
        same = [graph.call_function(torch.ravel, (made,)) for _ in range(2)]
        other = graph.call_function(torch.exp, (x,))
        return [made, *same, other, graph.call_function(torch.ravel, (other,))]

    outputs = observe(graph_of(build), [X]).outputs
    storages = [output.storage for output in outputs]
    assert storages[0] == storages[1] == storages[2]
    assert storages[3] == storages[4] != storages[0]
    assert calls.count("aten::exp") == 1


def test_a_call_that_writes_is_made_again() -> None:
    def build(graph: fx.Graph, x: fx.Node) -> Any:
        wide = graph.call_method("expand", (x, 3, 4))
        made = [graph.call_function(torch.exp, (wide,)) for _ in range(2)]
        graph.call_function(torch.relu_, (made[1],))
        graph.call_function(torch.relu_, (wide,))
        return made

    with pytest.raises(observation.UnsupportedError, match="overlap"):
        observe(graph_of(build), [torch.randn(1, 4)])


def test_a_switched_mode_lets_results_be_forgotten(calls: Calls) -> None:
    def build(graph: fx.Graph, x: fx.Node) -> Any:
        first = graph.call_function(torch.exp, (x,))
        graph.call_function(torch._C._set_grad_enabled, (False,))
        return first, graph.call_function(torch.exp, (x,))

    observe(graph_of(build), [X])
    assert calls.count("aten::exp") == 2


def test_functions_of_python_run_each_time() -> None:
    seen: list[int] = []

    def python(x: torch.Tensor) -> torch.Tensor:
        seen.append(0)
        return x + 1

    def build(graph: fx.Graph, x: fx.Node) -> Any:
        return [graph.call_function(python, (x,)) for _ in range(3)]

    observe(graph_of(build), [X])
    assert len(seen) == 3
