"""Results of a call that other results of it follow from: hooks, gradients, writes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from halves import Halves, Heads, halved, leaf, pair, same_state
from torch import Tensor

from magweld.frontend.traced import trace

Results = Sequence[Tensor]


def kept(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = torch.tanh(x * w)
    return h, h.exp() * w


def chained(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    a = x * w
    b = a.exp()
    return b.sum() * 2, a, b, b.argmax()


def bypassed(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    trunk = (x * w).sin()
    h = trunk.cos() * w
    return h, h * trunk


def with_a_third(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    trunk = (x * w).sin()
    h = trunk.cos()
    return h, h * w, trunk.exp(), h.square()


def in_place(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    h[0].mul_(2)
    h.sigmoid_()
    return h.contiguous() * w, h


def viewed(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = (x * w).t()
    part = h[1:].exp()
    return h, part


def recurrent(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x[0]
    outputs = []
    for step in x:
        h = torch.tanh(h * w[0] + step)
        outputs.append(h)
    return torch.stack(outputs), h


def random(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = torch.nn.functional.dropout(x * w, 0.5)
    return h, torch.nn.functional.dropout(h.exp(), 0.5)


PROGRAMS = [
    kept,
    chained,
    bypassed,
    with_a_third,
    in_place,
    viewed,
    recurrent,
    random,
]


def total(results: Results) -> Tensor:
    losses = [r.square().sum() for r in results if r.requires_grad]
    return sum(losses[1:], losses[0])


def floats(results: Results) -> list[Tensor]:
    return [result for result in results if result.requires_grad]


def retained(results: Results, leaves: Results) -> list[Any]:
    for result in floats(results):
        result.retain_grad()
    total(results).backward()
    return [result.grad for result in floats(results)]


def changed_by_hooks(results: Results, leaves: Results) -> list[Any]:
    seen: list[Any] = []

    def hook(gradient: Tensor) -> Tensor:
        seen.append(gradient.clone())
        return gradient * 2

    for result in floats(results):
        result.register_hook(hook)
    total(results).backward()
    return sorted(seen, key=lambda gradient: float(gradient.sum()))


def from_each_alone(results: Results, leaves: Results) -> list[Any]:
    found: list[Any] = []
    names: list[str] = []
    for number, result in enumerate(floats(results)):
        result.register_hook(lambda g, number=number: names.append(str(number)))
    for result in floats(results):
        others = [one for one in floats(results) if one is not result]
        found += torch.autograd.grad(
            result.sum(), [*others, *leaves], retain_graph=True, allow_unused=True
        )
        names.append("|")
        result.sum().backward(retain_graph=True)
        names.append("|")
    hooked = "".join(names).split("|")
    return [*found, *("".join(sorted(part)) for part in hooked)]


def of_gradients(results: Results, leaves: Results) -> list[Any]:
    once = torch.autograd.grad(
        total(results), [*leaves, *floats(results)], create_graph=True
    )
    total([gradient for gradient in once if gradient.requires_grad]).backward()
    return list(once)


USES = [retained, changed_by_hooks, from_each_alone, of_gradients]


def same(left: Any, right: Any) -> None:
    assert len(left) == len(right)
    for mine, theirs in zip(left, right, strict=True):
        if isinstance(theirs, Tensor):
            torch.testing.assert_close(mine, theirs)
        else:
            assert mine == theirs


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_gradients_through_other_results(function: Callable[..., Any]) -> None:
    traced = trace(function, backend=Halves())
    traced(leaf(3, 3), leaf(3, 3))
    assert halved(traced), traced.explain()
    for number, use in enumerate(USES):
        outcomes = []
        for call in (traced, function):
            torch.manual_seed(number)
            leaves = [leaf(3, 3), leaf(3, 3)]
            found = use(call(*leaves), leaves)
            outcomes.append([*found, *(one.grad for one in leaves)])
        same(*outcomes)
    assert traced.stats()["hits"] == len(USES), traced.explain()


def apart(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return x.exp() * 2, w.sin()


def overlapping(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    trunk = x.sin()
    return trunk * w, trunk.cos(), x.exp() * w


def equally_far(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    trunk = (x * w).sin()
    return trunk * w, trunk * 2


def test_only_such_results_have_nodes_of_their_own() -> None:
    for function, count in (
        *((Heads(), 3), (kept, 2), (chained, 3), (bypassed, 2)),
        *((apart, 2), (overlapping, 3), (equally_far, 1)),
    ):
        traced = trace(function, backend=Halves())
        arguments = (leaf(3, 3), leaf(3, 3))[: 1 if isinstance(function, Heads) else 2]
        traced(*arguments)
        assert len(traced.records[0].compiled.backward) == count


def test_operators_that_both_gradients_reach_run_once() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        trunk = x @ w
        h = trunk.sin()
        return h, h * trunk

    backend = Halves()
    traced = trace(function, backend=backend)
    for _ in range(2):
        total(traced(leaf(3, 3), leaf(3, 3))).backward()
    _, *backward = backend.graphs
    nodes = [node for graph in backward for node in graph.graph.nodes]
    products = [node for node in nodes if node.target is torch.ops.aten.mm.default]
    assert len(products) == 2


def read_before_a_write(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    y = h.exp()
    with torch.no_grad():
        h.mul_(2)
    return h, y


def read_by_an_older_view(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = x * w
    part = h[0]
    h.mul_(2)
    return h, part.exp()


def long_chain(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    results = [x * w]
    for _ in range(40):
        results.append(results[-1].sin())
    return tuple(results)


@pytest.mark.parametrize(
    "function", [read_before_a_write, read_by_an_older_view, long_chain]
)
def test_what_cannot_be_cut_is_left_to_torch(function: Callable[..., Any]) -> None:
    traced = trace(function, backend=Halves())
    for _ in range(2):
        x, w = leaf(3, 3), leaf(3, 3)
        outcomes = []
        for call in (traced, function):
            leaves = [one.detach().clone().requires_grad_() for one in (x, w)]
            found = retained(call(*leaves), leaves)
            outcomes.append([*found, *(one.grad for one in leaves)])
        same(*outcomes)
    (refusal,) = traced.records[0].breaks
    assert refusal.id == "training-graph"
    assert "training-intermediate-output" in refusal.detail


def test_a_second_backward_raises_where_eager_does() -> None:
    def light(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        h = x + w
        return h, h.exp()

    for function, raises in ((light, False), (kept, True)):
        traced = trace(function, backend=Halves())
        traced(leaf(3), leaf(3))
        for call in (traced, function):
            x, w = leaf(3), leaf(3)
            h, y = call(x, w)
            y.sum().backward()
            before = x.grad.clone()
            if raises:
                with pytest.raises(RuntimeError, match="a second time"):
                    h.sum().backward()
            else:
                h.sum().backward()
                torch.testing.assert_close(x.grad, before + 1)
            with pytest.raises(RuntimeError, match="a second time"):
                y.sum().backward()


def test_a_trunk_that_another_backward_has_freed() -> None:
    traced = trace(with_a_third, backend=Halves())
    traced(leaf(3), leaf(3))
    for call in (traced, with_a_third):
        _, y, third, _ = call(leaf(3), leaf(3))
        y.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            third.sum().backward()


def test_what_changed_in_between_is_noticed() -> None:
    traced = trace(kept, backend=Halves())
    traced(leaf(3), leaf(3))
    for create_graph in (False, True):
        for call in (traced, kept):
            x = leaf(3)
            h, y = call(x, leaf(3))
            with torch.no_grad():
                h.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                torch.autograd.grad(y.sum(), x, create_graph=create_graph)


def test_a_result_can_be_written_to_with_gradients() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        h = x + w
        return h, h * 2

    traced = trace(function, backend=Halves())
    traced(leaf(3), leaf(3))
    for call in (traced, function):
        x = leaf(3)
        h, y = call(x, leaf(3))
        h.mul_(3)
        h.retain_grad()
        (h + y).sum().backward()
        assert h.grad.tolist() == [1.0] * 3
        assert x.grad.tolist() == [5.0] * 3


def doubled(parameter: Tensor) -> None:
    parameter.grad.mul_(2)


def hooked(model: Any, call: Any, x: Tensor, number: int) -> list[str]:
    """Return which hooks a backward from one of two results runs."""
    names: list[str] = []
    if number == 2:
        weight = model.right.weight
        weight.register_hook(lambda g: g * 3)
        weight.register_post_accumulate_grad_hook(doubled)
    left, right = call(x)
    left.register_hook(lambda g: names.append(f"left {g.shape}"))
    right.register_hook(lambda g: names.append(f"right {g.shape}"))
    (left, right)[number % 2].sum().backward()
    return names


def test_hooks_run_for_what_gets_a_gradient() -> None:
    mine, twin, traced = pair(Heads())
    x = torch.randn(4, 3)
    traced(x)
    for number in range(4):
        names = hooked(mine, traced, x, number)
        assert names == hooked(twin, twin, x, number)
        assert len(names) == 1
        same_state(mine, twin)


def test_results_end_when_they_are_dropped() -> None:
    traced = trace(with_a_third, backend=Halves())
    traced(leaf(3), leaf(3))
    x = leaf(3)
    results = traced(x, leaf(3))
    total(results).backward(retain_graph=True)
    seen = [weakref.ref(one) for one in (x, *results)]
    del x, results
    gc.collect()
    assert [one() for one in seen] == [None] * len(seen)
