"""Training through compiled code: both halves of small models beside eager torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from magweld import api
from magweld.frontend import trace
from magweld.training.step import TrainingGraph


class Normalized(nn.Module):
    """Convolutions with batch statistics, pooling and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = F.max_pool2d(F.relu(self.norm(self.first(x)), inplace=True), 2)
        scores = self.head(self.drop(F.silu(self.second(x)).mean((2, 3))))
        return scores, scores.argmax(-1)


class Encoder(nn.Module):
    """Attention and a feed-forward part over embeddings, with a tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))
        self.project = nn.Linear(8, 24)
        self.mix = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.table(tokens)
        parts = self.project(self.norms[0](h)).view(*h.shape[:2], 3, 2, 4)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        h = h + mixed.transpose(1, 2).reshape(h.shape)
        return F.linear(h + self.mix(self.norms[1](h)), self.table.weight)


class Tables(nn.Module):
    """Sums of rows of tables, with and without an index that is skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(11, 8, mode="sum", padding_idx=padding)
            for padding in (None, 3)
        )
        self.rows = nn.Embedding(11, 8, padding_idx=2)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        found = [bags(tokens) for bags in self.bags]
        return self.head(torch.tanh(sum(found) + self.rows(tokens).mean(1)))


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], set[str]]] = {
    "normalized": (
        Normalized,
        lambda: torch.randn(2, 2, 10, 10),
        {"argmax", "bernoulli", "clone", "convolution", "max"},
    ),
    "encoder": (
        Encoder,
        lambda: torch.randint(0, 11, (2, 5)),
        {"checked", "places", "", "clone"},
    ),
    "tables": (
        Tables,
        lambda: torch.randint(0, 11, (4, 5), dtype=torch.int32),
        {"checked", "places"},
    ),
    "recurrent": (
        lambda: nn.Sequential(
            nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid()
        ),
        lambda: torch.randn(5, 3),
        set(),
    ),
}


def train(call: Any, optimizer: Any, x: Tensor, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    result = call(x)
    scores, *others = result if isinstance(result, tuple) else (result,)
    loss = scores.log_softmax(-1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return [scores, *others, loss, torch.get_rng_state()]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_models_train_in_compiled_code(name: str) -> None:
    make, data, through_torch = CASES[name]
    mine = make()
    twin, traced = copy.deepcopy(mine), trace(mine)
    optimizers = [
        torch.optim.SGD(m.parameters(), 0.01, momentum=0.5) for m in (mine, twin)
    ]
    for seed in range(3):
        x = data()
        left = train(traced, optimizers[0], x, seed)
        torch.testing.assert_close(left, train(twin, optimizers[1], x, seed))
        expected = twin.state_dict()
        for key, value in mine.state_dict().items():
            torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-5)
    (record,) = traced.records
    assert not record.breaks, traced.explain()
    assert isinstance(record.compiled, TrainingGraph)
    (backward,) = record.compiled.backward
    halves = [record.compiled.forward, *backward.compiled.values()]
    assert [type(half.compiled) for half in halves] == [api.CompiledGraph] * 2
    report = record.compiled.report()
    assert len(report["graphs"]) == 2
    externals = report["externals"]
    assert {operator.split("_")[0] for operator in externals} <= through_torch
    assert "linalg." in record.compiled.mlir("linalg")


def test_equal_layers_are_one_launch_in_both_halves() -> None:
    """Norms with their products, and the gradients of what they read and of weights."""

    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.towers = nn.ModuleList(
                nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)) for _ in range(3)
            )

        def forward(self, *inputs: Tensor) -> Tensor:
            pairs = zip(self.towers, inputs, strict=True)
            return torch.stack([tower(x).tanh() for tower, x in pairs])

    mine = Towers()
    twin, traced = copy.deepcopy(mine), trace(mine)
    for _ in range(2):
        inputs = torch.randn(3, 32, 16).unbind()
        for model, call in ((mine, traced), (twin, twin)):
            model.zero_grad()
            call(*inputs).square().mean().backward()
    for one, other in zip(mine.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    (record,) = traced.records
    (backward,) = record.compiled.backward
    for half in (record.compiled.forward, *backward.compiled.values()):
        groups = half.report()["groups"]
        # What joins the towers is there once, what adds two tensors in them twice.
        alone = [group["operators"] for group in groups if "members" not in group]
        assert len(alone) <= 1, alone
        assert all(len(g["members"]) % 3 == 0 for g in groups if "members" in g)


def test_gradients_of_inputs_and_of_gradients() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(x @ w)
        return h.sum(), h.exp().mean(0)

    traced = trace(function)
    for used in ([0], [0, 1], [1]):
        gradients = []
        x, w = torch.randn(4, 3), torch.randn(3, 2)
        for call in (traced, function):
            leaves = [t.clone().requires_grad_() for t in (x, w)]
            outputs = call(*leaves)
            loss = sum(outputs[n].square().sum() for n in used)
            once = torch.autograd.grad(loss, leaves, create_graph=len(used) == 2)
            if len(used) == 2:
                once += torch.autograd.grad(sum(g.square().sum() for g in once), leaves)
            gradients.append(once)
        torch.testing.assert_close(*gradients)
    assert traced.stats()["hits"] == 2
    assert isinstance(traced.records[0].compiled, TrainingGraph)


def test_results_that_follow_from_each_other() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        trunk = torch.tanh(x @ w)
        h = trunk.exp() @ w
        scores = h * trunk + 1
        return h, scores, scores.square().mean()

    traced = trace(function)
    for _ in range(3):
        outcomes = []
        x, w = torch.randn(4, 3), torch.randn(3, 3)
        for call in (traced, function):
            leaves = [t.clone().requires_grad_() for t in (x, w)]
            results = call(*leaves)
            for result in results[:2]:
                result.register_hook(lambda gradient: gradient * 2)
                result.retain_grad()
            sum(result.sum() for result in results).backward()
            outcomes.append([t.grad for t in (*leaves, *results[:2])])
        torch.testing.assert_close(*outcomes, rtol=1e-5, atol=1e-4)  # gradients of 100
    compiled = traced.records[0].compiled
    assert isinstance(compiled, TrainingGraph)
    halves = [half for one in compiled.backward for half in one.compiled.values()]
    assert [type(half.compiled) for half in halves] == [api.CompiledGraph] * 3


def test_a_backward_that_the_compiler_refuses_runs_through_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = nn.Linear(3, 2)
    traced = trace(model)
    x = torch.randn(4, 3)
    traced(x)
    y = traced(x)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(api, "compile_graph", refuse)
    with pytest.warns(UserWarning, match="no compiler"):
        y.sum().backward()
    torch.testing.assert_close(model.weight.grad, x.sum(0).expand(2, 3))
