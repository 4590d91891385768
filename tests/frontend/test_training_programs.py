"""Programs whose gradients go through a forward and a backward half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from halves import Halves, both, first, halved, leaf
from torch import Tensor

from magweld.frontend.traced import trace


def with_region(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    with torch.no_grad():
        scale = (x * w).mean()
    return x * w * scale, scale


def with_inner_enable(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    with torch.no_grad():
        h = x.exp()
        with torch.enable_grad():
            y = x * w
    return y + h, h


def with_writes(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    h[1:] *= 2
    h.t()[0].zero_()
    return h.relu_().sum(1), w


def with_stop(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    return h * h.detach(), h.detach() + 1


def with_random(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    torch.rand(3)
    noise = torch.randn_like(x)
    return F.dropout(x + noise, 0.5) * w, torch.rand(2)


def with_dropout_of_transposed(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return F.dropout((x * w).t(), 0.5), x


def with_attention_dropout(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    parts = (x * w).view(1, 1, 3, 4)
    return (F.scaled_dot_product_attention(parts, parts, parts, dropout_p=0.5),)


def with_repeated_output(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    return h, h, x, x * w


def with_saved_output(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = torch.tanh(x * w)
    return h.view(-1), torch.exp(h)


def with_loss(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return F.cross_entropy(x * w, torch.tensor([0, 1, 3])), (x * w).argmax()


def with_index(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    rows = torch.tensor([2, 0, 2])
    return x[rows] * w.index_select(0, rows), w.cumsum(0).sort()[0]


def with_one_part(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    left, right = (x * w).chunk(2, dim=1)
    return left * 2, right * 3


@pytest.mark.parametrize(
    "function",
    [
        with_region,
        with_inner_enable,
        with_writes,
        with_stop,
        with_random,
        with_dropout_of_transposed,
        with_attention_dropout,
        with_repeated_output,
        with_saved_output,
        with_loss,
        with_index,
        with_one_part,
    ],
    ids=lambda function: function.__name__,
)
def test_programs(function: Callable[..., Any]) -> None:
    checked = both(function, leaf(3, 4), leaf(3, 4), loss=first)
    assert halved(checked.traced), checked.traced.explain()


def test_a_result_that_is_an_input_is_that_input() -> None:
    traced = trace(lambda x, w: (x, x * w, x.detach()[0]), backend=Halves())
    x, w = leaf(3), leaf(3)
    for _ in range(2):
        same, product, view = traced(x, w)
        assert same is x
        assert not view.requires_grad
        assert view.data_ptr() == x.data_ptr()
    assert halved(traced)
    (product.sum() + same.sum()).backward()
    torch.testing.assert_close(x.grad, w.detach() + 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x.view(-1), x * w),
        lambda x, w: ((h := x * w), h[0]),
        lambda x, w: (x * w).chunk(2),
    ],
)
def test_views_that_need_gradients_are_left_to_torch(function: Any) -> None:
    checked = both(function, leaf(4, 4), leaf(4, 4), loss=lambda r: r[1].sum())
    assert not halved(checked.traced)
    (refusal,) = checked.traced.records[0].breaks
    assert refusal.id == "training-graph"
    assert "training-output-view" in refusal.detail


def form(tensor: Tensor) -> tuple[Any, ...]:
    kind = (tensor.requires_grad, tensor.is_leaf, tensor._is_view(), tensor._version)
    return (tensor.shape, tensor.stride(), tensor.storage_offset(), *kind)


def seen(results: Sequence[Tensor], write: int | None) -> list[Any]:
    """Return forms and elements of results, one of which is written to."""
    forms = [form(result) for result in results]
    if write is not None:
        results[write].detach().add_(1)
    versions = [result._version for result in results]
    return [forms, versions, *(result.detach().clone() for result in results)]


@pytest.mark.parametrize("write", [None, 0, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: ((y := x * 2), y.detach()),
        lambda x: ((y := x * 2).detach(), y),
        lambda x: ((y := x * 2), y.detach()[1:], y.detach().t(), y),
        lambda x: ((y := x * 2), y.data),
        lambda x: ((y := x * 2), *y.detach().split(1)),
        lambda x: ((y := (x * 2).sum()), y.detach()),
        lambda x: (x * 2, x.detach()),
    ],
)
def test_detached_results_share_memory(function: Any, write: int | None) -> None:
    traced = trace(function, backend=Halves())
    for _ in range(3):
        x = leaf(3, 4)
        mine, theirs = traced(x), function(y := x.detach().clone().requires_grad_())
        torch.testing.assert_close(seen(mine, write), seen(theirs, write))
        for results in (mine, theirs):
            sum(r.sum() for r in results if r.requires_grad).backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert halved(traced), traced.explain()


def test_a_written_input_that_needs_gradients_is_left_to_torch() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        x.mul_(w)
        return x * w, x

    traced = trace(function, backend=Halves())
    for _ in range(2):
        w, start = leaf(3), leaf(3)
        x = start * 1
        traced(x, w)[0].sum().backward()
        torch.testing.assert_close(start.grad, w.detach() ** 2)
        torch.testing.assert_close(w.grad, 2 * start.detach() * w.detach())
    assert traced.stats()["hits"] == 1
    assert "training-graph" in traced.explain()


def test_forward_mode_runs_through_torch() -> None:
    traced = trace(lambda x, w: (x * w,), backend=Halves())
    x, w = leaf(3), leaf(3)
    traced(x, w)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
        (y,) = traced(dual, w)
        tangent = torch.autograd.forward_ad.unpack_dual(y).tangent
    torch.testing.assert_close(tangent, w.detach())


def forgetful(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Return what runs a graph on values alone, as compiled code does."""

    def run(*tensors: torch.Tensor) -> Any:
        results = graph(*tensors)
        return tuple(torch.tensor(result.tolist()) for result in results)

    return run


def test_forward_mode_without_other_gradients() -> None:
    """A tensor tells nothing of a gradient that goes forward with it."""
    weight = torch.eye(3)
    traced = trace(lambda x: (x @ weight).sin(), backend=forgetful)
    x = torch.randn(3)
    forward_ad = torch.autograd.forward_ad
    for _ in range(2):
        traced(x), traced(x)
        for _ in range(2):
            with forward_ad.dual_level():
                y = traced(forward_ad.make_dual(x, torch.ones(3)))
                tangent = forward_ad.unpack_dual(y).tangent
            torch.testing.assert_close(tangent, x.cos())
    assert traced.stats()["hits"] >= 5, traced.explain()


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_transforms_around_a_traced_callable(transform: str) -> None:
    traced = trace(lambda x: x.pow(3).sum(-1), backend=Halves())
    x = torch.randn(2, 3, requires_grad=True)
    traced(x)
    traced(x[0])
    traced(torch.randn(2, 3))
    calls: dict[str, Callable[[Any], Any]] = {
        "grad": lambda f: torch.func.grad(lambda v: f(v).sum())(x),
        "vmap": lambda f: torch.func.vmap(f)(x),
        "jvp": lambda f: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
    }
    expected = calls[transform](lambda v: v.pow(3).sum(-1))
    torch.testing.assert_close(calls[transform](traced), expected)


def test_infinities_where_nothing_arrives() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = x * w
        return h, torch.stack([h.sqrt(), w]), torch.cat([h.log(), w])

    zero = torch.zeros(3, requires_grad=True)
    for loss in (first, lambda r: r[0].sum() + r[2][3:].sum()):
        checked = both(function, zero, leaf(3), loss=loss)
        assert halved(checked.traced)
