"""Gradients of gradients, and results that are written to before their backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from halves import Halves, Heads, Normalized, Recurrent, halved, leaf, pair, same_state
from torch import Tensor

from magweld.frontend.traced import trace


@pytest.mark.parametrize(
    ("make", "shape"),
    [(Normalized, (4, 4)), (Heads, (4, 3)), (Recurrent, (3, 2, 3))],
)
def test_gradients_of_gradients(make: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    mine, twin, traced = pair(make().double())
    for number in range(3):
        x = torch.randn(shape, dtype=torch.float64)
        for model, call in ((mine, traced), (twin, twin)):
            model.zero_grad()
            torch.manual_seed(number)
            result = call(x)
            loss = (result[0] if isinstance(result, tuple) else result).square().sum()
            parameters = [p for p in model.parameters() if p.requires_grad]
            gradients = torch.autograd.grad(
                loss, parameters, create_graph=True, allow_unused=True
            )
            penalty = sum(g.square().sum() for g in gradients if g is not None)
            (loss + penalty).backward()
        same_state(mine, twin)
    assert halved(traced), traced.explain()


def test_gradients_of_gradients_go_on_into_the_inputs_history() -> None:
    traced = trace(lambda x, w: (x.pow(3) * w,), backend=Halves())
    for _ in range(2):
        start, w = leaf(3), leaf(3)
        (y,) = traced(start * 2, w)
        (once,) = torch.autograd.grad(y.sum(), start, create_graph=True)
        (twice,) = torch.autograd.grad(once.sum(), start)
        torch.testing.assert_close(twice, 48 * start.detach() * w.detach())
    assert halved(traced)


def test_what_changed_in_between_is_not_differentiated_twice() -> None:
    traced = trace(lambda x, w: (x * w,), backend=Halves())
    w = leaf(3)
    for _ in range(2):
        (y,) = traced(leaf(3), w)
        with torch.no_grad():
            w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), w, create_graph=True)


@pytest.mark.parametrize("function", [torch.tanh, torch.exp, torch.relu])
def test_a_write_to_a_result_that_backward_needs_is_noticed(function: Any) -> None:
    traced = trace(lambda x, w: (function(x * w),), backend=Halves())
    for _ in range(2):
        (y,) = traced(leaf(3), leaf(3))
        with torch.no_grad():
            y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert halved(traced)


def test_results_can_be_written_to_with_gradients() -> None:
    def use(call: Any, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        (y,) = call(x, w)
        y[0].mul_(3)
        y.add_(1).pow_(2)
        return torch.autograd.grad(y.sum(), (x, w))

    def function(x: Tensor, w: Tensor) -> tuple[Tensor]:
        return (x * w,)

    traced = trace(function, backend=Halves())
    x, w = leaf(3, 2), leaf(3, 2)
    for _ in range(2):
        torch.testing.assert_close(use(traced, x, w), use(function, x, w))
    assert halved(traced)


def written_before(x: Tensor, w: Tensor) -> tuple[Tensor]:
    y = x * w
    part = y[:2]
    y.mul_(2)
    return (part,)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: ((x * w)[:2],),
        lambda x, w: (torch.stack([x, x * w])[1],),
        lambda x, w: ((x * w).t(),),
        written_before,
    ],
    ids=["part", "row", "transposed", "written before"],
)
def test_results_that_are_views_can_be_written_to(function: Any) -> None:
    def use(call: Any, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        (y,) = call(x, w)
        y.add_(1).pow_(2)
        return y.detach(), *torch.autograd.grad(y.sum(), (x, w))

    traced = trace(function, backend=Halves())
    x, w = leaf(3, 2), leaf(3, 2)
    for _ in range(3):
        torch.testing.assert_close(use(traced, x, w), use(function, x, w))
    assert halved(traced)


def first_of_several(x: Tensor, w: Tensor) -> tuple[Tensor]:
    return ((x * w).unbind()[0],)


def made_without_gradients(x: Tensor, w: Tensor) -> tuple[Tensor]:
    y = x.detach() * 2
    with torch.no_grad():
        part = y[:2]
    y.mul_(w)
    return (part,)


def older_than_a_write(x: Tensor, w: Tensor) -> tuple[Tensor]:
    y = x.detach() * 2
    part = y[:2]
    y.mul_(w)
    return (part,)


@pytest.mark.parametrize(
    "function", [first_of_several, made_without_gradients, older_than_a_write]
)
@pytest.mark.parametrize("backend", [Halves(), "magweld"], ids=["halves", "magweld"])
def test_views_that_torch_does_not_let_be_written_to(
    function: Any, backend: Any
) -> None:
    def use(call: Any) -> str:
        (y,) = call(leaf(3, 2), leaf(3, 2))
        with pytest.raises(RuntimeError) as caught:
            y.add_(1)
        return str(caught.value)

    traced = trace(function, backend=backend)
    for _ in range(8):
        assert use(traced) == use(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x + 1, x * 2),
        lambda x, w: (x.exp(), w.sin()),
        lambda x, w: ((x + w).exp(), (x + w) * 3),
        lambda x, w: (x.exp().sin(), x.exp().cos()),
    ],
    ids=["nothing kept", "apart", "one kept", "twice computed"],
)
def test_backward_from_each_result(function: Any) -> None:
    traced = trace(function, backend=Halves())
    for number in range(3):
        outcomes = []
        for call in (function, traced):
            torch.manual_seed(number)
            x, w = leaf(3), leaf(3)
            for result in call(x, w):
                result.sum().backward()
            outcomes.append((x.grad, w.grad))
        torch.testing.assert_close(outcomes[1], outcomes[0])
    assert halved(traced), traced.explain()


def test_backward_through_what_another_has_freed() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.exp()
        return y * 2, y + 1

    traced = trace(function, backend=Halves())
    for call in (traced, function, traced):
        first, second = call(leaf(3))
        first.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            second.sum().backward()
        first, second = call(leaf(3))
        first.sum().backward(retain_graph=True)
        second.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            first.sum().backward()


@pytest.mark.parametrize(
    ("function", "is_refused"),
    [
        (lambda x, w: (x + w, x * 2), False),
        (lambda x, w: (x * torch.full((3,), 2.0), w + 1), True),
    ],
    ids=["nothing", "a constant"],
)
def test_a_second_backward_of_what_is_kept_by_eager_alone(
    function: Any, is_refused: bool
) -> None:
    """The backward half keeps nothing, and as in eager, inputs may change."""
    traced = trace(function, backend=Halves())
    for call in (function, traced, traced):
        x, w = leaf(3), leaf(3)
        first, second = call(x, w)
        first.sum().backward()
        with torch.no_grad():
            x.add_(1)
        second.sum().backward()
        raised = ""
        try:
            first.sum().backward()
        except RuntimeError as error:
            raised = str(error)
        assert ("a second time" in raised) is is_refused
    assert halved(traced)
