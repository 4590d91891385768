"""Training through traced callables: optimizers, hooks and modes beside eager torch.

The backend here runs each half by torch and, as a compiler would, lets no gradient
through; a graph that was left to torch as a whole fails the tests.
"""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Callable

import pytest
import torch
from halves import (
    Convolutions,
    Halves,
    Heads,
    Normalized,
    Recurrent,
    Tied,
    both,
    first,
    halved,
    leaf,
    pair,
    same_state,
)
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.utils.checkpoint import checkpoint

from magweld.frontend.traced import trace

MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "normalized": (Normalized, lambda: torch.randn(6, 4)),
    "convolutions": (Convolutions, lambda: torch.randn(2, 2, 8, 8)),
    "tied": (Tied, lambda: torch.randint(0, 11, (2, 5))),
    "recurrent": (Recurrent, lambda: torch.randn(3, 2, 3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_train_as_their_twins(name: str) -> None:
    make, data = MODELS[name]
    torch.manual_seed(0)
    mine, twin, traced = pair(make())
    optimizers = [
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.5, weight_decay=0.1)
        for model in (mine, twin)
    ]
    for number in range(4):
        x = data()
        states = []
        for call, optimizer in zip((traced, twin), optimizers, strict=True):
            torch.manual_seed(number)
            result = call(x)
            loss = (result[0] if isinstance(result, tuple) else result).square().mean()
            optimizer.zero_grad(set_to_none=number % 2 == 0)
            loss.backward()
            parameters = optimizer.param_groups[0]["params"]
            norm = torch.nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            states.append((loss, norm, torch.get_rng_state()))
        torch.testing.assert_close(*map(list, states))
        same_state(mine, twin)
    assert traced.stats()["hits"] == 3, traced.explain()
    assert halved(traced), traced.explain()


def test_an_unused_output_gives_no_gradient_and_no_decay() -> None:
    mine, twin, traced = pair(Heads())
    optimizers = [
        torch.optim.AdamW(m.parameters(), 0.1, weight_decay=0.5) for m in (mine, twin)
    ]
    for used in ([0], [0], [1], [0, 1], [1]):
        x = torch.randn(4, 3)
        for call, optimizer in zip((traced, twin), optimizers, strict=True):
            optimizer.zero_grad()
            outputs = call(x)
            sum(outputs[n].sum() for n in used).backward()
            optimizer.step()
        same_state(mine, twin)
    assert halved(traced)
    assert traced.stats()["hits"] == 4


def test_an_unused_output_does_not_spoil_gradients() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        h = x * 2
        return h, h.log()

    (gradient,) = both(
        function, torch.zeros(3, requires_grad=True), loss=first
    ).compare(torch.zeros(3, requires_grad=True), loss=first)
    assert gradient is not None
    assert gradient.tolist() == [2.0, 2.0, 2.0]


def test_gradients_accumulate_in_place_and_in_part() -> None:
    model = nn.Linear(3, 2)
    traced = trace(model, backend=Halves())
    x = torch.randn(4, 3)
    for _ in range(2):
        traced(x).sum().backward()
    kept = model.weight.grad
    for _ in range(2):
        traced(x).sum().backward()
    assert model.weight.grad is kept
    torch.testing.assert_close(kept, 4 * x.sum(0).expand(2, 3))
    (only,) = torch.autograd.grad(traced(x).sum(), model.bias)
    assert only.tolist() == [4.0, 4.0]
    torch.testing.assert_close(kept, 4 * x.sum(0).expand(2, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x.view(6) + y,),
        lambda x, y: ((x.view(6) + y) * 2, y * 3),  # one of two results is used
    ],
)
def test_gradients_do_not_share_memory(
    function: Callable[[Tensor, Tensor], tuple[Tensor, ...]],
) -> None:
    traced = trace(function, backend=Halves())
    for _ in range(2):
        x, y = leaf(2, 3), leaf(6)
        traced(x, y)[0].square().sum().backward()
        before = y.grad.clone()
        x.grad.zero_()
        assert torch.equal(y.grad, before)


def test_a_graph_is_kept_only_when_asked() -> None:
    traced = trace(lambda x, w: (torch.tanh(x * w),), backend=Halves())
    x, w = leaf(3), leaf(3)
    traced(x, w)
    (y,) = traced(x, w)
    (first_time,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    (second_time,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(first_time, second_time)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(y.sum(), x)


def test_nothing_is_kept_alive_by_a_dropped_result() -> None:
    traced = trace(lambda x, w: (torch.tanh(x * w),), backend=Halves())
    w = leaf(3)
    traced(leaf(3), w)
    x = leaf(3)
    (y,) = traced(x, w)
    seen = weakref.ref(x)
    del x, y
    gc.collect()
    assert seen() is None


def test_hooks_run_once() -> None:
    model = nn.Linear(3, 2)
    traced = trace(model, backend=Halves())
    seen: list[str] = []
    x = torch.randn(4, 3)
    traced(x)
    model.weight.register_hook(lambda g: seen.append("weight"))
    model.bias.register_post_accumulate_grad_hook(lambda p: seen.append("bias"))
    y = traced(x)
    y.register_hook(lambda g: seen.append("result"))
    y.retain_grad()
    loss = y.sum()
    (gradient,) = torch.autograd.grad(loss, model.weight, create_graph=True)
    assert seen == ["result", "weight"]
    assert gradient.requires_grad is False or gradient.grad_fn is not None
    seen.clear()
    traced(x).sum().backward()
    assert sorted(seen) == ["bias", "weight"]


def test_parameters_can_be_frozen_between_calls() -> None:
    mine, twin, traced = pair(Heads())
    frozen = (mine.body, twin.body)
    for number in range(6):
        for module in frozen:
            module.requires_grad_(number % 2 == 0)
        x = torch.randn(4, 3)
        for model, call in ((mine, traced), (twin, twin)):
            model.zero_grad()
            call(x)[0].sum().backward()
        same_state(mine, twin)
    assert traced.stats()["graphs"] == 2
    assert traced.stats()["hits"] == 4


def test_calls_without_gradients_have_a_record_of_their_own() -> None:
    _, twin, traced = pair(Heads())
    x = torch.randn(4, 3)
    for number in range(6):
        with torch.set_grad_enabled(number % 2 == 0):
            left, right = traced(x), twin(x)
        torch.testing.assert_close(left, right)
        assert left[0].requires_grad == right[0].requires_grad
    assert traced.stats()["graphs"] == 2


def test_two_calls_before_one_backward() -> None:
    mine, twin, traced = pair(Normalized().train())
    for number in range(3):
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        for model, call in ((mine, traced), (twin, twin)):
            torch.manual_seed(number)
            model.zero_grad()
            (call(x)[0] * call(y)[0]).sum().backward()
        same_state(mine, twin)
    assert halved(traced)


def test_a_program_that_only_looks_like_training() -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad():
            return (x * w).exp(), w.argmax()

    traced = trace(function, backend=Halves())
    x, w = leaf(3), leaf(3)
    for _ in range(2):
        torch.testing.assert_close(traced(x, w), function(x, w))
    assert not traced.records[0].breaks
    assert not halved(traced)


@pytest.mark.parametrize("half", ["forward", "backward"])
def test_a_half_that_the_backend_refuses_runs_through_torch(half: str) -> None:
    model = nn.Linear(3, 2)
    traced = trace(model, backend=Halves(refuses=half))
    x = torch.randn(4, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced(x)
        traced(x).sum().backward()
    assert any("backend-failed" in str(warning.message) for warning in caught)
    model.zero_grad()
    traced(x).sum().backward()
    torch.testing.assert_close(model.weight.grad, x.sum(0).expand(2, 3))
    assert traced.records[0].breaks[0].id == "backend-failed"


def test_the_backward_half_is_compiled_when_first_run() -> None:
    backend = Halves()
    traced = trace(Heads(), backend=backend)
    x = torch.randn(4, 3)
    traced(x)
    traced(x)
    assert len(backend.graphs) == 1
    for _ in range(2):
        sum(y.sum() for y in traced(x)).backward()
    # A part for each head, and one for what both lead to.
    assert len(backend.graphs) == 4
    for number in range(3):
        traced(x)[number % 2].sum().backward()
    assert len(backend.graphs) == 6


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_traced_module_can_be_checkpointed(reentrant: bool) -> None:
    mine, twin, traced = pair(Normalized())
    for number in range(3):
        x = torch.randn(4, 4, requires_grad=True)
        for model, call in ((mine, traced), (twin, twin)):
            torch.manual_seed(number)
            model.zero_grad()
            scores = checkpoint(call, x, use_reentrant=reentrant)[0]
            scores.sum().backward()
        same_state(mine, twin)
    assert traced.stats()["hits"] >= 3


def test_saved_tensors_hooks_see_what_is_kept() -> None:
    traced = trace(lambda x, w: (torch.tanh(x * w),), backend=Halves())
    x, w = leaf(3), leaf(3)
    traced(x, w)
    packed = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(tensor)
        return tensor.clone()

    for call in (trace(lambda x, w: (torch.tanh(x * w),), backend=Halves()), traced):
        packed.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            (y,) = call(x, w)
        assert len(packed) == 3
        assert all(type(tensor) is not FakeTensor for tensor in packed)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, (1 - y.detach() ** 2) * w.detach())


def test_sizes_that_keep_changing_leave_a_training_graph_to_torch_and_say_so() -> None:
    """Halves are of one size: those of the first sizes answer these further on."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    traced = trace(copy.deepcopy(model), backend=Halves())
    twin = copy.deepcopy(model)
    sizes = (3, 4, 5, 6, 3, 4, 5, 7)
    for size in sizes:
        x = torch.randn(size, 4)
        mine, theirs = traced(x), twin(x)
        torch.testing.assert_close(mine, theirs)
        for result in (mine, theirs):
            result.square().sum().backward()
    records = {record.number: record for record in traced.records}
    assert [records[n].lifted is not None for n in sorted(records)] == [
        False,
        False,
        True,
    ]
    assert [records[n].hits for n in (0, 1)] == [1, 1]
    assert traced.records[-1] is records[2]
    (reason,) = records[2].breaks
    assert reason.id == "training-graph"
    for ours, other in zip(traced.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, other.grad)
