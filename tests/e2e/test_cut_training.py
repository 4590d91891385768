"""Training graphs with operators that torch runs, and compiled ones between them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld.cut_graph import CutGraph
from magweld.frontend import trace

CALLS = 3


class Ranking(nn.Module):
    """Tables with sparse gradients beside one without, and results in between."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(10, 8, mode="sum", sparse=True)
        self.rows = nn.Embedding(10, 8, sparse=True)
        self.dense = nn.Embedding(10, 8)
        self.hidden = nn.Linear(8, 8)
        self.out = nn.Linear(8, 1)
        self.drop = nn.Dropout(0.3)

    def forward(self, places: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        h = torch.tanh(self.hidden(x) * 2 + 1)
        bags = self.bags(places)
        looked_up = self.dense(places).mean(1) + self.rows(places).sum(1)
        y = self.out(self.drop(torch.relu(h * bags + looked_up) * 2 + 1))
        return y, bags, h


def step(call: Callable[..., Any], model: nn.Module, number: int) -> list[Any]:
    """Train once; return results, gradients, and what is drawn next."""
    torch.manual_seed(number)
    places, x = torch.randint(0, 10, (4, 3)), torch.randn(4, 8, requires_grad=True)
    model.zero_grad()
    y, bags, h = call(places, x)
    (y.square().mean() + (bags * h).sum()).backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(parameter.grad.to_dense(), alpha=0.01)
    return [y, bags, h, x.grad, *gradients, torch.rand(2)]


def test_sparse_gradients() -> None:
    torch.manual_seed(0)
    model = Ranking()
    twin = copy.deepcopy(model)
    fast = trace(model, compile="now")
    for number in range(CALLS):
        found, expected = step(fast, model, number), step(twin, twin, number)
        torch.testing.assert_close(found, expected)
        kinds = [(one.layout, one.requires_grad, one.is_leaf) for one in found]
        assert kinds == [(o.layout, o.requires_grad, o.is_leaf) for o in expected]
    assert fast.stats()["hits"] == CALLS - 1
    assert not fast.breaks
    compiled = fast.records[0].compiled
    assert isinstance(compiled, CutGraph)
    report = compiled.report()
    assert len(report["cuts"]) == 2
    assert report["pieces"]
    assert report["groups"]
    assert "training-sparse-gradient" in fast.explain()


@pytest.fixture
def custom() -> Iterator[Any]:
    """An operator of a user with gradients, without a form for tensors without data."""
    library = torch.library.Library("magweld_test_training", "FRAGMENT")
    library.define("opaque(Tensor x) -> Tensor")

    class Opaque(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return torch.from_numpy(x.detach().numpy() * 3)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 3

    library.impl("opaque", Opaque.apply, "AutogradCPU")
    yield torch.ops.magweld_test_training.opaque
    library._destroy()


def test_an_operator_without_shapes(custom: Any) -> None:
    w = torch.randn(8, 8)

    def program(x: Tensor) -> Tensor:
        h = torch.softmax(x @ w * 2, -1) + 1
        return torch.tanh(custom(h) * 3 - 1).sigmoid()

    fast = trace(program, compile="now")
    for number in range(CALLS):
        outcomes = []
        for call in (fast, program):
            torch.manual_seed(number)
            x = torch.randn(4, 8, requires_grad=True)
            y = call(x)
            y.square().sum().backward()
            outcomes.append((y, x.grad))
        torch.testing.assert_close(*outcomes)
    assert fast.stats()["hits"] == CALLS - 1
    assert isinstance(fast.records[0].compiled, CutGraph), fast.explain()


def test_a_graph_with_nothing_to_compile_runs_through_torch() -> None:
    table = torch.randn(10, 3, requires_grad=True)
    fast = trace(lambda i: F.embedding(i, table, sparse=True) * 2, compile="now")
    for _ in range(3):
        table.grad = None
        fast(torch.tensor([1, 2])).sum().backward()
        assert table.grad is not None
        assert table.grad.is_sparse
    (reason,) = fast.records[0].breaks
    assert reason.id == "training-graph"
    assert "training-sparse-gradient" in str(reason)


class Tagger(nn.Module):
    """An LSTM of a layer of torch's library, and layers that are compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.tags = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        # Torch writes the layer out where gradients of its input are wanted.
        states, _ = self.lstm(x)
        return torch.log_softmax(self.tags(torch.tanh(states * 2 + 1)), -1)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_recurrent_layers(training: bool) -> None:
    torch.manual_seed(0)
    model = Tagger().train(training)
    twin = copy.deepcopy(model)
    fast = trace(model, compile="now")
    for _ in range(CALLS):
        x = torch.randn(2, 5, 8)
        results = []
        for call, one in ((fast, model), (twin, twin)):
            one.zero_grad()
            y = call(x)
            y.square().mean().backward()
            results.append([y, *(p.grad.clone() for p in one.parameters())])
        torch.testing.assert_close(*results)
    assert fast.stats()["hits"] == CALLS - 1
    assert "training-workspace" in fast.explain()
    assert not any("backend raised" in str(one) for one in fast.breaks)
