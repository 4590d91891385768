"""Calls like those before are recorded without being run, as if they had been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from recording import record
from torch import Tensor

from magweld.importer.importer import ImportedGraph, import_graph
from magweld.importer.repeated_traces import RepeatedTraces
from magweld.importer.tracer import Recorder

INPUTS = [torch.randn(*s) for s in ((4, 8), (4, 8), (32, 8), (32, 8), (32,), (32,))]


def cells(a: Tensor, b: Tensor, *weights: Tensor) -> Any:
    h, c = a, b
    for _ in range(3):
        h, c = torch.lstm_cell(a, (h, c), *weights)
    return h, c


def one_tensor_twice(a: Tensor, b: Tensor, *weights: Tensor) -> Any:
    h, c = torch.lstm_cell(a, (b, b), *weights)
    return torch.lstm_cell(b, (h, c), *weights), torch.lstm_cell(a, (a, a), *weights)


def writes_between(a: Tensor, b: Tensor, *weights: Tensor) -> Any:
    h, c = torch.lstm_cell(a, (a, b), *weights)
    h.add_(1)
    c[0].mul_(2)
    h, c = torch.lstm_cell(h, (h.clone(), c), *weights)
    h.t().add_(1)
    return torch.lstm_cell(h, (c, c.neg()), *weights), h


def writes_out(a: Tensor, b: Tensor, *weights: Tensor) -> Any:
    made = torch.empty(4, 32)
    for x in (a, b, a + b):
        torch.addmm(weights[2], x, weights[0].t(), out=made)
    return made


def norms(a: Tensor, b: Tensor, *weights: Tensor) -> Any:
    return [torch.layer_norm(x, (8,)) for x in (a, b, a + b)]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many operators each repeated call records."""
    found: list[int] = []
    repeat = Recorder.repeat

    def counted(self: Recorder, recorded: Any, *more: Any) -> list[Tensor]:
        found.append(len(recorded.nodes))
        return repeat(self, recorded, *more)

    monkeypatch.setattr(Recorder, "repeat", counted)
    return found


@pytest.mark.parametrize(
    ("function", "repeated"),
    [
        (cells, 1),
        (one_tensor_twice, 0),
        (writes_between, 1),
        (writes_out, 0),
        (norms, 2),
    ],
)
def test_text_is_that_of_calls_that_run(
    function: Callable[..., Any],
    repeated: int,
    sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = record(function, *(x.clone() for x in INPUTS))
    found = import_graph(graph, INPUTS)
    assert len(sizes) == repeated
    assert all(size > 2 for size in sizes)
    monkeypatch.setattr(RepeatedTraces, "run", lambda self, n, a, k, run: run())
    assert told(import_graph(graph, INPUTS)) == told(found)
    assert len(sizes) == repeated


def test_a_switched_mode_lets_calls_be_forgotten(sizes: list[int]) -> None:
    graph = record(cells, *(x.clone() for x in INPUTS))
    (*_, last) = graph.graph.find_nodes(op="call_function", target=torch.lstm_cell)
    with graph.graph.inserting_before(last):
        graph.graph.call_function(torch._C._set_grad_enabled, (False,))
    import_graph(graph, INPUTS)
    assert not sizes


def told(graph: ImportedGraph) -> list[Any]:
    """Return all that the operators of a graph say."""
    nodes = [
        (node.name, node.meta.get("recorded"), forms(node.meta.get("val")))
        for node in graph.aten.graph.nodes
    ]
    return [graph.text, repr(graph.epilogue), graph.arguments, nodes]


def forms(values: Any) -> list[Any]:
    leaves = torch.utils._pytree.tree_leaves(values)
    return [(x.shape, x.stride(), x.dtype) for x in leaves if isinstance(x, Tensor)]


def test_repeated_calls_give_what_eager_gives(check: Callable[..., Any]) -> None:
    check(writes_between, *INPUTS)
