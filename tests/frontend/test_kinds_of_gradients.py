"""Gradients that compiled code cannot take, and backwards that a mode looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from halves import Halves, halved, leaf
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.frontend.traced import trace

Results = tuple[Tensor, ...]


def single(x: Tensor, w: Tensor) -> Results:
    return ((x @ w).tanh() @ w,)


def chained(x: Tensor, w: Tensor) -> Results:
    h = (x @ w).tanh()
    return h, h @ w


def plain(x: Tensor, w: Tensor) -> Results:
    return x * w, x + w


def kept(x: Tensor, w: Tensor) -> Results:
    h = x * w
    return h, h * w


def random(x: Tensor, w: Tensor) -> Results:
    h = F.dropout(x @ w, 0.5)
    return h, F.dropout(h.exp(), 0.5)


class Marked(Tensor):
    """A class of the user's."""


class Names(TorchDispatchMode):
    """Notes which products run."""

    def __init__(self) -> None:
        super().__init__()
        self.products = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.products += func is torch.ops.aten.mm.default
        return func(*args, **(kwargs or {}))


def many_at_once(results: Results, leaves: list[Tensor]) -> list[Any]:
    result = results[-1]
    each = torch.eye(result.numel()).view(-1, *result.shape)
    return [*torch.autograd.grad(result, leaves, each, is_grads_batched=True)]


def sparse(results: Results, leaves: list[Tensor]) -> list[Any]:
    rows = torch.tensor([0, 2, 2])
    loss = torch.stack([F.embedding(rows, one, sparse=True) for one in results])
    found = torch.autograd.grad(loss.square().sum(), leaves)
    return [item for one in found for item in (one.layout, one.to_dense())]


def of_a_class(results: Results, leaves: list[Tensor]) -> list[Any]:
    given = [torch.ones_like(one).as_subclass(Marked) for one in results]
    torch.autograd.backward(results, given)
    return [one.grad for one in leaves]


def of_zeros(results: Results, leaves: list[Tensor]) -> list[Any]:
    given = [torch._efficientzerotensor(one.shape) for one in results]
    torch.autograd.backward(results, given)
    return [one.grad for one in leaves]


def negated(results: Results, leaves: list[Tensor]) -> list[Any]:
    given = [torch.complex(one, one).detach().conj().imag for one in results]
    assert all(one.is_neg() for one in given)
    return [*torch.autograd.grad(results, leaves, given)]


def under_autocast(results: Results, leaves: list[Tensor]) -> list[Any]:
    loss = results[-1].square().sum()
    with torch.autocast("cpu", torch.bfloat16):
        return [*torch.autograd.grad(loss, leaves)]


def seen_by_a_mode(results: Results, leaves: list[Tensor]) -> list[Any]:
    loss = results[-1].square().sum()
    with Names() as names:
        loss.backward()
    return [names.products, *(one.grad for one in leaves)]


DENSE = [many_at_once, of_a_class, of_zeros, negated, under_autocast, seen_by_a_mode]
CASES = [
    *((function, use) for function in (single, chained, random) for use in DENSE),
    *((plain, use) for use in (many_at_once, sparse, of_a_class, negated)),
    (kept, sparse),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("function", "use"), CASES, ids=lambda one: getattr(one, "__name__", "")
)
def test_gradients_are_those_of_eager(
    function: Callable[..., Results], use: Callable[..., Any]
) -> None:
    traced = trace(function, backend=Halves())
    traced(leaf(3, 3), leaf(3, 3))
    assert halved(traced), traced.explain()
    outcomes = []
    for call in (traced, function):
        torch.manual_seed(1)
        leaves = [leaf(3, 3), leaf(3, 3)]
        found = use(call(*leaves), leaves)
        outcomes.append([*found, torch.get_rng_state()])
    for mine, theirs in zip(*outcomes, strict=True):
        assert type(mine) is type(theirs)
        if not isinstance(mine, Tensor):
            assert mine == theirs
            continue
        torch.testing.assert_close(mine, theirs, check_stride=True)
    assert traced.stats()["hits"] == 1


def views(x: Tensor, w: Tensor) -> Results:
    return x.sum(), x.t() + 1, (x.view(9) * 2).view(3, 3), w + 1


def test_gradients_that_are_views_of_others() -> None:
    """Strides, memory and the tensor itself: eager hands gradients on."""
    traced = trace(views, backend=Halves())
    traced(leaf(3, 3), leaf(3, 3))
    for number in range(4):
        facts = []
        for call in (traced, views):
            leaves = [leaf(3, 3), leaf(3, 3)]
            result = call(*leaves)[number]
            given = torch.ones(()).expand(result.shape)
            found = torch.autograd.grad(result, leaves, given, allow_unused=True)
            facts.append(
                [
                    (g is given, g.stride(), g.untyped_storage().data_ptr() == at)
                    for at in [given.untyped_storage().data_ptr()]
                    for g in found
                    if g is not None
                ]
            )
        assert facts[0] == facts[1], number
    assert halved(traced), traced.explain()


def test_gradients_of_leaves_have_memory_of_their_own() -> None:
    def function(x: Tensor, w: Tensor, y: Tensor) -> Results:
        return x + w, w - y, x * 2

    traced = trace(function, backend=Halves())
    for _ in range(2):
        leaves = [leaf(3), leaf(3), leaf(3)]
        given = torch.ones(3)
        traced(*leaves)[0].backward(given)
        leaves[0].grad.zero_()
        assert leaves[1].grad.tolist() == given.tolist() == [1.0] * 3
    assert halved(traced), traced.explain()
