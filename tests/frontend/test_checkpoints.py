"""Checkpointed parts of programs belong to one graph, and are computed anew in hits."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from halves import Halves, pair, same_state
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from magweld.frontend import trace

CALLS = 4


class Block(nn.Module):
    """Counts how often it runs, outside of what is traced."""

    runs = 0

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 6)
        self.dropout = dropout

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        y = torch.tanh(self.first(x)) * scale
        y = nn.functional.dropout(y, self.dropout, self.training)
        return x + self.second(y)


class Stack(nn.Module):
    """Blocks, each one checkpointed."""

    def __init__(self, dropout: float = 0.0, **options: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(3))
        self.options = {"use_reentrant": False, **options}

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, **self.options)
        return x.square().mean()


def checkpoints_in(traced: Any) -> int:
    nodes = [node for record in traced.records for node in record.graph.graph.nodes]
    return sum("checkpoint" in node.name for node in nodes if node.op != "placeholder")


@pytest.mark.sample(2)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_checkpointed_blocks_train_as_eagerly(dropout: float, backend: str) -> None:
    mine, twin, _ = pair(Stack(dropout))
    moment = "now" if backend == "magweld" else None
    traced = trace(mine, backend=backend, compile=moment)
    for number in range(CALLS):
        x = torch.randn(5, 6)
        states = []
        for model, call in ((mine, traced), (twin, twin)):
            torch.manual_seed(number)
            model.zero_grad()
            loss = call(x)
            drawn = torch.get_rng_state()
            loss.backward()
            assert torch.equal(drawn, torch.get_rng_state())
            states.append((loss.detach(), drawn))
        torch.testing.assert_close(*states)
        same_state(mine, twin)
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == CALLS - 1, traced.explain()
    assert checkpoints_in(traced) >= 3


def test_a_hit_keeps_what_eager_keeps() -> None:
    """Autograd keeps the arguments of a checkpointed part alone."""

    def kept(call: Callable[[Tensor], Tensor], x: Tensor) -> int:
        seen: list[Tensor] = []
        hooks = (lambda one: (seen.append(one), one)[1], lambda one: one)
        with torch.autograd.graph.saved_tensors_hooks(*hooks):
            call(x)
        return len(seen)

    mine, twin, _ = pair(Stack())
    traced, x = trace(mine, backend="eager"), torch.randn(5, 6)
    traced(x)
    assert kept(traced, x) == kept(twin, x)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("form", ["module", "method", "closure", "partial", "keyword"])
def test_without_gradients_a_checkpoint_is_its_function(
    reentrant: bool, form: str
) -> None:
    block, factor = Block(), torch.randn(6)
    if reentrant and form == "keyword":
        pytest.skip("torch takes no keywords there")

    def program(x: Tensor) -> Tensor:
        forms: dict[str, Callable[[], Tensor]] = {
            "module": lambda: checkpoint(block, x, use_reentrant=reentrant),
            "method": lambda: checkpoint(block.forward, x, use_reentrant=reentrant),
            "closure": lambda: checkpoint(
                lambda y: block(y) * factor, x, use_reentrant=reentrant
            ),
            "partial": lambda: functools.partial(checkpoint, use_reentrant=reentrant)(
                functools.partial(block.forward, scale=2.0), x
            ),
            "keyword": lambda: checkpoint(block, x, scale=3.0, use_reentrant=reentrant),
        }
        return forms[form]() + 1

    traced = trace(program, backend="eager")
    with torch.no_grad():
        for _ in range(CALLS):
            x = torch.randn(5, 6, requires_grad=True)
            torch.testing.assert_close(traced(x), program(x))
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == CALLS - 1, traced.explain()


@pytest.mark.parametrize("reentrant", [None, True])
def test_hits_warn_as_torch_does_of_a_checkpoint(reentrant: bool | None) -> None:
    block = Block()

    def program(x: Tensor, unused: Tensor) -> Tensor:
        y = checkpoint(lambda x, y: block(x), x, unused, use_reentrant=reentrant)
        layers = nn.Sequential(block, nn.Tanh())
        return y + checkpoint_sequential(layers, 2, x, use_reentrant=reentrant)

    def run(call: Callable[..., Tensor], x: Tensor, unused: Tensor) -> list[Any]:
        with warnings.catch_warnings(record=True) as found, torch.no_grad():
            warnings.simplefilter("always")
            result = call(x, unused)
        return [
            result,
            *((str(w.message), w.category, w.filename, w.lineno) for w in found or ()),
        ]

    traced = trace(program, backend="eager")
    plain, needs = torch.ones(6), torch.ones(6, requires_grad=True)
    texts = []
    for unused in (plain, plain, needs, needs, plain):
        x = torch.randn(5, 6)
        expected, found = run(program, x, unused), run(traced, x, unused)
        torch.testing.assert_close(found[0], expected[0])
        assert found[1:] == expected[1:]
        texts.append(found[1:])
    assert texts[0] != texts[2]
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == 3, traced.explain()


def test_a_checkpoint_warns_in_vain_where_warnings_are_errors() -> None:
    block, x = Block(), torch.randn(5, 6)
    traced = trace(lambda x: checkpoint(block, x, use_reentrant=True), backend="eager")
    with torch.no_grad():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced(x)
            assert traced(x).shape == (5, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="None of the inputs"):
                traced(x)


def test_what_the_function_reads_is_guarded() -> None:
    scales = [1.0]

    def program(x: Tensor) -> Tensor:
        return checkpoint(lambda y: y * scales[0], x, use_reentrant=False).sum()

    traced = trace(program, backend="eager")
    for scale in (1.0, 1.0, 2.0, 1.0):
        scales[0] = scale
        x = torch.ones(3, requires_grad=True)
        traced(x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [scale] * 3
    assert traced.stats()["records"] == 2


class Counting(nn.Module):
    """Changes something when it runs, which happens twice in training."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.count, self.seen = kind, 0, [0]
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("total", torch.zeros(()))

    def part(self, x: Tensor) -> Tensor:
        if self.kind == "attribute":
            self.count += 1
        elif self.kind == "list":
            self.seen.append(self.seen[-1] + 1)
        elif self.kind == "statistics":
            x = self.norm(x)
        elif self.kind == "buffer":
            self.total.add_(1)
        return x.sin()

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.part, x * 2, use_reentrant=False).sum()

    def state(self) -> Any:
        return self.count, self.seen, self.total.item(), self.norm.num_batches_tracked


@pytest.mark.parametrize("kind", ["attribute", "list", "statistics", "buffer"])
def test_a_function_that_writes_is_left_to_torch(kind: str) -> None:
    mine, twin, _ = pair(Counting(kind))
    traced = trace(mine, backend="eager")
    for _ in range(CALLS):
        x = torch.randn(5, 6)
        for model, call in ((mine, traced), (twin, twin)):
            given = x.clone().requires_grad_()
            call(given).backward()
            model.grads = given.grad
        torch.testing.assert_close(mine.grads, twin.grads)
        assert mine.state() == twin.state()
    assert any("checkpoint" in one.detail for one in traced.breaks), traced.explain()


REFUSED: dict[str, dict[str, Any]] = {
    "reentrant": {"use_reentrant": True},
    "debug": {"debug": True},
    "no check": {"determinism_check": "none"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_ways_are_breaks_that_say_so(name: str) -> None:
    mine, twin, _ = pair(Stack(**REFUSED[name]))
    traced = trace(mine, backend="eager")
    for _ in range(CALLS):
        x = torch.randn(5, 6)
        grads = []
        for call in (traced, twin):
            given = x.clone().requires_grad_()
            call(given).backward()
            grads.append(given.grad)
        torch.testing.assert_close(*grads)
        same_state(mine, twin)
    assert any("checkpoint" in one.detail for one in traced.breaks), traced.explain()


def test_an_exception_in_the_function_reaches_the_program() -> None:
    def part(x: Tensor) -> Tensor:
        if x.shape[0] > 2:
            raise ValueError("too long")
        return x.sin()

    def program(x: Tensor) -> Any:
        try:
            return checkpoint(part, x, use_reentrant=False).sum()
        except ValueError as error:
            return str(error)

    traced = trace(program, backend="eager")
    for size in (2, 2, 3, 3, 2):
        x = torch.ones(size, requires_grad=True)
        result, expected = traced(x), program(x)
        assert result == expected


def test_one_checkpoint_within_another() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)

    def inner(x: Tensor) -> Tensor:
        return torch.tanh(first(x))

    def outer(x: Tensor) -> Tensor:
        return second(checkpoint(inner, x, use_reentrant=False).cos())

    def program(x: Tensor) -> Tensor:
        return checkpoint(outer, x, use_reentrant=False).sum()

    traced = trace(program, backend="eager")
    for _ in range(CALLS):
        grads = []
        data = torch.randn(3, 4)
        for call in (traced, program):
            x = data.clone().requires_grad_()
            first.zero_grad()
            call(x).backward()
            grads.append((x.grad, first.weight.grad))
        torch.testing.assert_close(*grads)
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == CALLS - 1


class Plain(Stack):
    """The same without checkpoints."""

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


@pytest.mark.parametrize("kind", [Stack, Plain])
def test_compiled_halves_keep_what_lies_between_checkpoints(kind: type[Stack]) -> None:
    mine, twin, _ = pair(kind())
    backend = Halves()
    traced = trace(mine, backend=backend)
    for _ in range(2):
        x = torch.randn(5, 6)
        for model, call in ((mine, traced), (twin, twin)):
            model.zero_grad()
            call(x).backward()
        same_state(mine, twin)
    (output,) = backend.graphs[0].graph.find_nodes(op="output")
    # The loss, and what two blocks hand on; the other one takes the argument.
    assert (len(output.args[0]) == 3) == (kind is Stack)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_sizes_that_change_train_as_eagerly(backend: str) -> None:
    mine, twin, _ = pair(Stack())
    moment = "now" if backend == "magweld" else None
    traced = trace(mine, backend=backend, compile=moment)
    for rows in (5, 5, 4, 3, 6, 7, 4, 5):
        x = torch.randn(rows, 6)
        for model, call in ((mine, traced), (twin, twin)):
            model.zero_grad()
            call(x).backward()
        same_state(mine, twin)
    assert traced.breaks == [], traced.explain()


class Doubled(torch.autograd.Function):
    """A sine whose gradient is twice that of a sine."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] * x.cos() * 2


def test_a_custom_function_may_be_checkpointed() -> None:
    def program(x: Tensor) -> Tensor:
        return checkpoint(lambda t: Doubled.apply(t * 3), x, use_reentrant=False).sum()

    traced = trace(program, backend="eager")
    for _ in range(CALLS):
        data, grads = torch.randn(3), []
        for call in (traced, program):
            x = data.clone().requires_grad_()
            call(x).backward()
            grads.append(x.grad)
        torch.testing.assert_close(*grads)
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == CALLS - 1
