"""A backend without gradients, models to train, and comparison with eager torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from magweld.frontend.traced import Traced, trace
from magweld.training.step import TrainingGraph


@dataclass
class Halves:
    """A backend without gradients; keeps the graphs that it was given."""

    graphs: list[fx.GraphModule] = field(default_factory=list)
    refuses: str = ""
    differentiates: bool = False

    def __call__(self, graph: fx.GraphModule, inputs: list[Tensor]) -> Any:
        if self.refuses == ("backward" if self.graphs else "forward"):
            raise RuntimeError("no such operator")
        self.graphs.append(graph)

        def run(*arguments: Tensor) -> Any:
            assert not torch.is_grad_enabled()
            detached = [argument.detach() for argument in arguments]
            return graph(*detached)

        return run


def halved(traced: Traced) -> bool:
    """Return whether the latest record runs as two halves."""
    return isinstance(traced.records[0].compiled, TrainingGraph)


def pair(model: nn.Module) -> tuple[nn.Module, nn.Module, Traced]:
    """Return a model, its twin, and the model traced."""
    return model, copy.deepcopy(model), trace(model, backend=Halves())


def same_state(mine: nn.Module, twin: nn.Module, *, exactly: bool = False) -> None:
    """Compare parameters, buffers and gradients."""
    tolerance = {"rtol": 0.0, "atol": 0.0} if exactly else {}
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(mine.state_dict()[name], value, **tolerance)
    for (name, left), right in zip(
        mine.named_parameters(), twin.parameters(), strict=True
    ):
        assert (left.grad is None) == (right.grad is None), name
        if left.grad is not None:
            torch.testing.assert_close(left.grad, right.grad, **tolerance)


class Normalized(nn.Module):
    """Batch statistics, an in-place activation, dropout, several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = F.relu(self.norm(self.first(x)), inplace=True)
        h = self.drop(h)
        return self.head(h), h.argmax(-1), h.detach()


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, stride=2, groups=2)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.gelu(self.norm(self.first(x))), 2)
        return self.head(F.silu(self.second(x)).mean((2, 3)))


class Tied(nn.Module):
    """An encoder layer between an embedding and a head of the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.project = nn.Linear(8, 24)
        self.head = nn.Linear(8, 11)
        self.head.weight = self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.table(tokens)
        batch, length, _ = h.shape
        parts = self.project(self.norm(h)).view(batch, length, 3, 2, 4)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.head(h + mixed.transpose(1, 2).reshape(h.shape))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[1], 4)
        outputs = []
        for step in x:
            state = self.cell(step, state)
            outputs.append(state)
        return torch.stack(outputs)


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.left = nn.Linear(3, 2)
        self.right = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x).tanh()
        return self.left(h), self.right(h)


@dataclass
class Both:
    """A function of tensors, called traced and eagerly on equal fresh leaves."""

    function: Callable[..., Any]
    traced: Traced

    def compare(
        self, *inputs: Tensor, loss: Callable[[Any], Tensor]
    ) -> list[Tensor | None]:
        """Compare results, gradients and random state; return the gradients."""
        outcomes = []
        for call in (self.traced, self.function):
            torch.manual_seed(1)
            leaves = [
                x.detach().clone().requires_grad_(x.requires_grad) for x in inputs
            ]
            result = call(*leaves)
            loss(result).backward()
            gradients = [leaf.grad for leaf in leaves]
            outcomes.append((result, gradients, leaves, torch.get_rng_state()))
        (mine, left, wrote, random), (theirs, right, written, expected) = outcomes
        torch.testing.assert_close(mine, theirs, equal_nan=True)
        for a, b in zip(mine, theirs, strict=True):
            assert a.requires_grad == b.requires_grad
            assert a.stride() == b.stride()
        assert [g is None for g in left] == [g is None for g in right]
        kept = [(a, b) for a, b in zip(left, right, strict=True) if a is not None]
        for a, b in kept:
            torch.testing.assert_close(a, b, equal_nan=True)
            assert a.stride() == b.stride()
        torch.testing.assert_close(wrote, written, equal_nan=True)
        assert torch.equal(random, expected)
        return left


def both(
    function: Callable[..., Any], *inputs: Tensor, loss: Callable[[Any], Tensor]
) -> Both:
    """Record a function and compare a hit with eager torch."""
    checked = Both(function, trace(function, backend=Halves()))
    checked.compare(*inputs, loss=loss)
    checked.compare(*inputs, loss=loss)
    assert checked.traced.stats()["hits"] == 1, checked.traced.explain()
    return checked


def leaf(*shape: int) -> Tensor:
    return torch.randn(shape, requires_grad=True)


def first(result: Any) -> Tensor:
    return result[0].sum()
