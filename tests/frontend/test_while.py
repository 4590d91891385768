"""`while` on a tensor as an operator of the graph: one record for every count."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace
from magweld.graphs.control_operators import WhileOperator


def deep(x):
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def halving(x):
    h = deep(x)
    n = h * 0
    while h.norm() > 1:
        h = h * 0.5
        n = n + 1
    return h, n


def endless(x):
    h = deep(x)
    y = h
    while True:
        h = h * 0.5 + y * 0.01
        if h.norm() < 1:
            break
        y = y * 0.9
    return h + y


def with_branch(x):
    h = deep(x)
    a, b = h, h + 1
    while a.abs().max() < 50:
        if a.sum() > 3:
            a, b = b + a, a * 2
        else:
            a, b = b.abs() + 1, a * 1
    return a


def with_one_way(x):
    h = deep(x)
    while h.norm() > 1:
        if h.sum() > 0:
            h = h * 0.5
        h = h * 0.75
    return h


def changing_places(x):
    h = deep(x)
    a, b = h.abs(), h.abs() + 1
    while b.max() < 50:
        a, b = b, a + b
    return a, b


def with_random_writes(x):
    h = deep(x)
    for _ in range(2):
        while h.norm() > 1:
            h.mul_(torch.rand(1))
        h = h + 3
    return h


def shrink(h):
    while h.norm() > 1:
        h = h * 0.5
    return h


def in_callee(x):
    h = deep(x)
    k = shrink(h)
    return k, h


def negated(x):
    h = deep(x)
    while not (h.norm() < 1):
        h = h * 0.5
    return h if h.sum() > 0.5 else h.abs()


def nested(x):
    h = deep(x)
    k = h.abs() + 1
    while h.norm() > 1:
        while k.norm() > h.norm():
            k = k * 0.5
        h = h * 0.7
    return h, k


def with_invariants(x):
    h = deep(x)
    w = h * 2
    while h.norm() > 1:
        h = h * 0.5 + w * 0.0001
    return h


PROGRAMS = (
    halving,
    endless,
    with_branch,
    with_one_way,
    changing_places,
    with_random_writes,
    in_callee,
    negated,
    nested,
    with_invariants,
)
SCALES = (1.0, -10.0, 0.01, 100.0, 3.0, 0.1)


@pytest.mark.sample(18)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [0.01, 1.0, 40.0])
def test_one_record_answers_every_count(program, first):
    traced = trace(program, backend="eager")
    for scale in (first, *SCALES):
        x = torch.tensor([1.0, 2.0, 3.0]) * scale
        torch.manual_seed(7)
        mine = traced(x.clone()), torch.rand(1)
        torch.manual_seed(7)
        theirs = program(x.clone()), torch.rand(1)
        assert str(mine) == str(theirs)
    stats = traced.stats()
    assert stats["graphs"] == 1, traced.explain()
    assert stats["hits"] >= len(SCALES) - 1, traced.explain()
    nodes = traced.records[0].graph.graph.nodes
    assert any(isinstance(node.target, WhileOperator) for node in nodes)


def test_gradients_through_a_loop():
    weight = torch.tensor([0.5, 1.5, 2.0], requires_grad=True)

    def program(x):
        h = deep(x * weight)
        while h.norm() > 1:
            h = h * weight * 0.3
        return h.sum()

    traced = trace(program, backend="eager")
    for scale in (1.0, 20.0, 0.1):
        x = torch.tensor([1.0, 2.0, 3.0]) * scale
        (mine,) = torch.autograd.grad(traced(x), weight)
        (theirs,) = torch.autograd.grad(program(x), weight)
        assert torch.equal(mine, theirs)
    assert traced.stats()["hits"] == 2


def counter(h, n):
    return h * 0.5, n + 1


def growing(h, n):
    return torch.cat([h, h])[::2][:2] * 0.5, n


def narrowing(h, n):
    return h.double() * 0.5, n


@pytest.mark.parametrize("body", [counter, narrowing], ids=lambda f: f.__name__)
def test_what_a_loop_cannot_carry(checker, body):
    def program(x):
        h, n = deep(x), 0
        while h.norm() > 1:
            h, n = body(h, n)
        return h * n

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    assert check(x) == "record"
    assert check.assumes
    for _ in range(3):
        check(x * 8)


def test_strides_that_change(checker):
    def program(x):
        h = deep(x)
        while h.norm() > 1:
            h = growing(h, 0)[0]
        return h

    check = checker(program)
    for scale in (1.0, 8.0, 0.01, 3.0):
        check(torch.tensor([1.0, 2.0]) * scale)


def test_state_is_not_written_in_a_loop(twins):
    class Model:
        def __init__(self):
            self.steps = 0
            self.seen = []

        def step(self, x):
            h = deep(x)
            while h.norm() > 1:
                self.steps += 1
                self.seen.append(1)
                h = h * 0.5
            return h

    pair = twins(Model)
    x = torch.tensor([1.0, 2.0])
    outcomes = [pair.step(x * scale) for scale in (0.01, 1.0, 8.0, 8.0)]
    assert outcomes[0] == "record"


class Decoder(nn.Module):
    """Emits symbols until the last one, one loop with a recurrent cell."""

    def __init__(self, symbols=7, width=8):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, symbols)
        self.out = torch.zeros(20, dtype=torch.long)

    def forward(self, state):
        state = deep(state)
        symbol = torch.zeros(1, dtype=torch.long)
        place = torch.zeros(1, dtype=torch.long)
        out = torch.full((20,), -1)
        while ((symbol != 3) & (place < 19)).all():
            state = self.cell(self.embedding(symbol), state)
            symbol = self.head(state).argmax(-1)
            out = out.index_copy(0, place, symbol)
            place = place + 1
        return out, state


def test_decoder():
    torch.manual_seed(11)
    model = Decoder().eval()
    traced = trace(model, backend="eager")
    lengths = set()
    with torch.no_grad():
        for _ in range(12):
            state = torch.randn(1, 8) * 2
            mine, theirs = traced(state), model(state)
            assert all(map(torch.equal, mine, theirs))
            lengths.add(int((theirs[0] >= 0).sum()))
    assert len(lengths) > 2
    assert traced.stats()["records"] == 1
    assert traced.stats()["hits"] == 11
