"""Custom autograd functions: the user's own backward on every hit, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from halves import Halves, leaf
from torch import Tensor
from torch.autograd import Function

from magweld.frontend import trace

SCALE = [2.0]
TABLE = torch.tensor([1.0, 2.0, 3.0])
LOG: list[Tensor] = []


class Loud(Function):
    """Its backward is no derivative: nothing but the user's code gives it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * ctx.factor * 100 + x, None


class Reads(Function):
    """Reads a list, a tensor and a helper of its module."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.scale = SCALE[0]
        return helped(x) * SCALE[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * ctx.scale * SCALE[0]


def helped(x: Tensor) -> Tensor:
    return x + TABLE


class Pair(Function):
    """Two results, one of them of no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        order = x.argsort()
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)
        ctx.both = ctx.needs_input_grad
        return x[order] + y, order

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor, Tensor | None]:
        (order,) = ctx.saved_tensors
        return gradient[order] * 7, gradient if ctx.both[1] else None


class InPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 30


class Logs(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        LOG.append(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class Prints(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        print("forward")
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class Looks(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * x.max().item()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def agree(function: Any, *inputs: Tensor, hits: int) -> Any:
    """Call traced and eagerly three times; compare results and gradients."""
    traced = trace(function, backend="eager")
    for number in range(3):
        outcomes = []
        for call in (traced, function):
            leaves = [(x.detach() + number).requires_grad_() for x in inputs]
            result = call(*leaves)
            parts = result if isinstance(result, tuple) else (result,)
            parts[0].square().sum().backward()
            outcomes.append([*parts, *(leaf.grad for leaf in leaves)])
        torch.testing.assert_close(*outcomes)
    assert traced.stats()["hits"] == hits, traced.explain()
    return traced


def loud_twice(x: Tensor) -> Tensor:
    return Loud.apply(Loud.apply(x.sin(), 2.0) + x, 0.5).exp()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (loud_twice, 1),
        (lambda x: Reads.apply(x) + x, 1),
        (lambda x, y: Pair.apply(x * 2, y), 2),
        (lambda x, y: Pair.apply(x, y.detach()), 2),
    ],
)
def test_the_backward_is_the_users(function: Any, inputs: int) -> None:
    agree(function, *[leaf(3) for _ in range(inputs)], hits=2)


def test_what_forward_reads_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = trace(lambda x: Reads.apply(x)[: int(SCALE[0])], backend="eager")
    x = leaf(3)
    for scale in (2.0, 2.0, 1.0, 1.0):
        monkeypatch.setitem(globals(), "SCALE", [scale])
        assert traced(x).shape == (int(scale),)
    assert traced.stats()["hits"] == 2
    monkeypatch.setitem(globals(), "TABLE", torch.ones(1, 3))
    assert traced(x).shape == (1, 3)


def test_a_patched_forward_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = trace(lambda x: Loud.apply(x, 2.0), backend="eager")
    x = leaf(3)
    traced(x), traced(x)
    monkeypatch.setattr(Loud, "forward", staticmethod(lambda ctx, x, factor: x - 1))
    torch.testing.assert_close(traced(x), x - 1)


@pytest.mark.parametrize("function", [Logs, Prints, Looks, InPlace])
def test_forward_that_does_more_than_compute_is_refused(function: Any) -> None:
    LOG.clear()
    traced = agree(lambda x: function.apply(x * 2), leaf(3), hits=0)
    assert traced.breaks[0].id == "custom-function"
    assert len(LOG) == (6 if function is Logs else 0)


def test_state_that_was_written_before_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        SCALE[0] = 3.0
        return Reads.apply(x)

    try:
        traced = agree(function, leaf(3), hits=0)
    finally:
        SCALE[0] = 2.0
    assert traced.breaks[0].id == "custom-function"


def test_other_state_may_be_written_before_and_behind() -> None:
    notes: dict[str, Any] = {}

    def function(x: Tensor) -> Tensor:
        notes["before"] = x.shape[0]
        y = Reads.apply(x)
        notes["behind"] = y
        return Loud.apply(y, 2.0)

    agree(function, leaf(3), hits=2)
    assert list(notes) == ["before", "behind"]


def test_text_of_forward_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    traced = trace(lambda x: Prints.apply(x), backend="eager")
    for _ in range(3):
        traced(leaf(3))
        assert capsys.readouterr().out == "forward\n"


@pytest.mark.parametrize("grad", [True, False])
def test_a_compiling_backend_leaves_it_to_torch(grad: bool) -> None:
    traced = trace(lambda x: Loud.apply(x, 2.0) + 1, backend=Halves())
    with torch.set_grad_enabled(grad):
        for _ in range(3):
            x = leaf(3)
            y = traced(x)
            torch.testing.assert_close(y, x * 2 + 1)
    assert traced.stats()["hits"] == 2
    refused = [item.id for item in traced.records[0].breaks]
    assert refused == (["custom-function"] if grad else [])
    if grad:
        y.sum().backward()
        torch.testing.assert_close(x.grad, x.detach() + 200)


def test_an_error_in_forward_is_the_users() -> None:
    traced = trace(lambda x: Pair.apply(x, torch.ones(5)), backend="eager")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size"):
            traced(leaf(3))
    other = trace(lambda x: x + 1, backend="eager")
    other(leaf(3)), other(leaf(3))
    assert other.stats()["hits"] == 1
