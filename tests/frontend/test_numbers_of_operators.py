"""Numbers that decide what an operator gives back are part of the guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import _pytree as pytree

from magweld.frontend import trace

STEPS = (1, 2, 3, 3, 4, 5, 6, 7, 2, 1, 9)


def rolled(x: Tensor, step: int) -> Tensor:
    return x.roll(step)


FUNCTIONS: dict[str, Callable[[Tensor, int], Any]] = {
    "dropout-flag": lambda x, step: F.dropout(x, 0.5, training=step > 3),
    "dropout-rate": lambda x, step: F.dropout(x, max(step - 3, 0) / 10),
    "alpha-dropout": lambda x, step: F.alpha_dropout(x, 0.5, training=step > 3),
    "torch.dropout": lambda x, step: torch.dropout(x * 2, 0.5, step > 3),
    "rrelu": lambda x, step: F.rrelu(-x, 0.1, 0.3, training=step > 3),
    "squeeze": lambda x, step: x.view(1, 64).squeeze(0 if step > 3 else 1),
    "flatten": lambda x, step: x.view(8, 8).flatten(0 if step < 4 else 1),
    "to": lambda x, step: x.to(torch.float32 if step < 4 else torch.float64),
    "contiguous": lambda x, step: x.view(8, 8)[:, : step % 8 + 1].contiguous(),
    "clamp": lambda x, step: x.clamp(0, step),
    "roll": rolled,
    "normalize": lambda x, step: F.normalize(x, p=step, dim=0),
    "repeat": lambda x, step: x.repeat_interleave(1 if step < 3 else 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_that_decide_about_a_result(name: str) -> None:
    function = FUNCTIONS[name]

    def run(call: Callable[[Tensor, int], Any]) -> list[Any]:
        torch.manual_seed(0)
        return [call(torch.ones(64), step) for step in STEPS]

    fast = trace(function, backend="eager")
    torch.testing.assert_close(run(fast), run(function))
    assert fast.stats()["hits"] >= 3


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, k: float) -> Tensor:
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.k, None


class State:
    n = 0


def of_attribute(x: Tensor, k: int) -> Tensor:
    State.n += k
    return Scale.apply(x, State.n) + 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: Scale.apply(x, k) + 1,
        lambda x, k: Scale.apply(x * 2, k / 10) + 1,
        lambda x, k: Scale.apply(x, x.shape[0] + k) + 1,
        lambda x, k: Scale.apply(*(x, k)) + 1,
        of_attribute,
    ],
)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_numbers_of_custom_functions(
    function: Callable[[Tensor, int], Tensor], backend: str
) -> None:
    def run(call: Callable[[Tensor, int], Tensor]) -> list[tuple[Tensor, Tensor]]:
        State.n, found = 0, []
        for k in (1, 2, 3, 4, 5, 5, 3):
            x = torch.ones(2, requires_grad=True)
            y = call(x, k)
            y.sum().backward()
            assert x.grad is not None
            found.append((y.detach(), x.grad))
        return found

    torch.testing.assert_close(run(trace(function, backend=backend)), run(function))


VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "detach": lambda x: x.detach(),
    "detach-and-value": lambda x: (x.detach(), x * 2),
    "view-of-detached": lambda x: (x.detach()[1:], x.detach().t()),
    "data": lambda x: x.data,
    "view": lambda x: x.t(),
    "view-and-detached": lambda x: (x.t(), x.detach()),
    "marked": lambda x: x.detach().t().requires_grad_(),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("leaf", [True, False])
def test_views_need_gradients_as_in_eager(name: str, leaf: bool) -> None:
    function = VIEWS[name]
    fast = trace(function)
    for _ in range(3):
        x = torch.randn(4, 3, requires_grad=True)
        x = x if leaf else x * 1
        found, expected = pytree.tree_leaves(fast(x)), pytree.tree_leaves(function(x))
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.requires_grad is theirs.requires_grad
            assert mine.is_leaf is theirs.is_leaf
            assert (mine.data_ptr() == x.data_ptr()) is (
                theirs.data_ptr() == x.data_ptr()
            )


def test_an_operator_whose_last_result_is_left_out(tmp_path: Any) -> None:
    """A recurrent layer has a workspace in runs without data, none in real ones."""
    import magweld

    x = torch.randn(5, 2, 3)
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        layer = kind(3, 4)
        with torch.no_grad():
            expected = layer(x)
            fast = trace(layer)
            for _ in range(3):
                torch.testing.assert_close(fast(x), expected)
            assert fast.stats()["hits"] == 2
            artifact = magweld.compile(layer, (x,))
            torch.testing.assert_close(artifact(x), expected)
            artifact.save(tmp_path / "layer.mw")
            loaded = magweld.load(tmp_path / "layer.mw")
            torch.testing.assert_close(loaded(x), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_around_a_call(dtype: torch.dtype) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 16),
        torch.nn.LayerNorm(16),
        torch.nn.Unflatten(1, (4, 4)),
        torch.nn.GroupNorm(2, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 3),
        torch.nn.Softmax(-1),
    ).eval()
    x = torch.randn(4, 16)
    fast = trace(model)
    with torch.no_grad(), torch.autocast("cpu", dtype):
        for _ in range(4):
            torch.testing.assert_close(fast(x), model(x))
    assert fast.stats()["hits"] == 3
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multilabel_margin": F.multilabel_margin_loss,
    "multilabel-mean": lambda x, y: F.multilabel_margin_loss(x, y, reduction="none"),
    "multi_margin": lambda x, y: F.multi_margin_loss(x, y[:, 0].clamp(min=0)),
    "hardshrink": lambda x, y: F.hardshrink(x).sum(),
    "softshrink": lambda x, y: F.softshrink(x).sum(),
    "nll": lambda x, y: F.cross_entropy(x, y[:, 0].clamp(min=0)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_that_torch_takes_apart_above_autograd(name: str) -> None:
    function = LOSSES[name]
    fast = trace(function)
    for labels in ([3, 0, -1, 1], [0, -1, 2, 3], [-1, 0, 1, 2], [0, 1, 2, 3]) * 2:
        found = []
        values, y = torch.randn(2, 4), torch.tensor([labels, labels])
        for call in (fast, function):
            x = values.clone().requires_grad_()
            loss = call(x, y)
            loss.sum().backward()
            found.append((loss.detach(), x.grad))
        torch.testing.assert_close(*found)


def test_a_rate_for_which_an_operator_gives_back_its_operand() -> None:
    def program(x: Tensor, rate: float) -> tuple[bool, Tensor]:
        y = torch.nn.functional.dropout(x, rate, True)
        return y is x, y * 2

    fast = trace(program, backend="eager")
    x = torch.ones(3)
    for rate in (0.5, 0.4, 0.3, 0.2, 0.0, 0.0, 0.1, 0.0):
        torch.manual_seed(0)
        found = fast(x, rate)
        torch.manual_seed(0)
        same, result = program(x, rate)
        assert found[0] is same, fast.explain()
        assert torch.equal(found[1], result)
    assert fast.stats()["hits"] >= 2, fast.explain()
