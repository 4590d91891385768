"""Branches on tensors as operators of the graph: one record for both ways."""

from __future__ import annotations

import contextvars
import functools
import random

import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace
from magweld.graphs.control_operators import IfOperator


def deep(x):
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def operators(traced):
    """Return the if operators of the newest record."""
    graph = traced.records[0].graph.graph
    return [n.target for n in graph.nodes if isinstance(n.target, IfOperator)]


def both_arms(x):
    h = deep(x)
    if h.sum() > 0:
        y = h * 2
    else:
        y = h - 1
    return y + 1


def one_arm(x):
    h = deep(x)
    if h.sum() > 0:
        h = h * 2
    return h + 1


def negated(x):
    h = deep(x)
    if not (h.sum() > 0):
        h = h - 5
    return h


def callee(h):
    if h.mean() > 0:
        return h.relu() + 3
    return h.sigmoid()


def in_callee(x):
    h = deep(x)
    a = callee(h)
    return a, h


def expression(x):
    h = deep(x)
    return (h if h.sum() > 1 else -h) * 2


def nested_in_loop(x):
    h = deep(x)
    for i in range(3):
        if h.sum() > i:
            if h.sum() > 3:
                h = h + 1
            else:
                h = h - 2
    return h


def chain(x):
    h = deep(x)
    s = h.sum()
    if s > 4:
        h = h * 2
    elif s > 2:
        h = h * 3
    elif s > -3:
        h = h.abs()
    else:
        h = h - 1
    return h


def both_conditions(x):
    h = deep(x)
    if h.sum() > 0 and h.max() < 3:
        h = h + 10
    return h


def pairs_of_results(x):
    h = deep(x)
    if h.sum() > 0:
        return h, h * 2
    return h + 1, h


def with_views(x):
    h = deep(x)
    y = h.view(3, 1)
    if h.sum() > 0:
        z = y.view(-1)
    else:
        z = h * 3
    z.add_(1)
    return h, y, z


def in_closure(x):
    h = deep(x)
    scale = 2.0

    def apply(t):
        if t.sum() > 0:
            return t * scale
        return t - scale

    return apply(h)


def with_context(x):
    h = deep(x)
    if h.sum() > 0:
        with torch.no_grad():
            h = h * 2
    else:
        h = h**2
    return h


def with_keyword_only(x, *rest, scale=2.0, **more):
    h = deep(x)
    if h.sum() > 0:
        h = h * scale + len(rest)
    return h + len(more)


PROGRAMS = (
    both_arms,
    one_arm,
    negated,
    in_callee,
    expression,
    nested_in_loop,
    chain,
    both_conditions,
    pairs_of_results,
    with_views,
    in_closure,
    with_context,
    with_keyword_only,
)
SCALES = (1.0, -1.0, 0.4, -0.4, 3.0, 0.05)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_one_record_answers_both_ways(checker, program, first):
    check = checker(program)
    x = torch.tensor([1.0, 2.0, 3.0])
    outcomes = [check(x * scale) for scale in (first, *SCALES)]
    # A tensor that one way hands through may leave the other call to be recorded.
    assert outcomes.count("record") == 1
    assert set(outcomes[outcomes.index("record") + 1 :]) == {"hit"}
    assert outcomes.index("record") <= 2


def while_loop(x):
    h = deep(x)
    while h.sum() < 20:
        h = h.abs() + 4
    return h


def for_loop(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


@pytest.mark.parametrize("program", [both_arms, while_loop, for_loop])
def test_sub_graphs_run_no_hooks_of_modules(program):
    seen = []
    traced = trace(program, backend="eager", dynamic={"x": (0,)})
    inputs = [torch.ones(2 + size) * sign for size, sign in enumerate((1, -1, 1, -1))]
    for x in inputs:
        traced(x)
    hits = traced.stats()["hits"]
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, args, result: seen.append(module)
    )
    with hook:
        for x in inputs:
            assert torch.equal(traced(x), program(x))
    assert traced.stats()["hits"] == hits + len(inputs), traced.explain()
    assert seen == []


def test_results_keep_their_identity():
    def program(x):
        h = deep(x)
        return x if h.sum() > 0 else h

    traced = trace(program, backend="eager")
    negative, positive = torch.tensor([-1.0, 2.0]), torch.tensor([1.0, 2.0])
    assert traced(-positive) is not None
    assert traced.stats()["graphs"] == 1
    assert traced(positive) is positive
    assert traced(-positive) is not None
    assert traced(negative) is negative
    assert traced.stats()["hits"] == 3


def test_identity_of_a_chosen_tensor_is_not_baked_in(checker):
    def program(x):
        h = deep(x)
        y = h
        if h.sum() > 0:
            y = h * 2
        return y + 1 if y is h else y

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    assert check(x) == "tensor-value"
    assert check(-x) == "tensor-value"
    assert check(x) == "tensor-value"


def test_a_tensor_in_use_elsewhere_is_not_replaced(checker):
    def program(x):
        h = deep(x)
        kept = [h]
        y = h
        if h.sum() > 0:
            y = h * 2
        return y + kept[0]

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    # y and kept[0] are one object here.
    assert check(-x) == "record"
    assert check.assumes
    # Two hits fail; then no record assumes which way is taken.
    check(x)
    check(x)
    assert check(x) == "record"
    assert not check.assumes
    assert check(-x) == "hit"
    assert check(x) == "hit"


def as_attribute(h):
    y = torch.ones(2)
    y.note = h
    return lambda: y.note


def in_class(h):
    class Holder:
        held = h

    return lambda: Holder.held


def in_static_method(h):
    method = staticmethod(lambda held=h: held)
    return lambda: method()


def in_property(h):
    found = property(lambda self, held=h: held)
    return lambda: found.fget(None)


def in_context(h):
    variable = contextvars.ContextVar("variable")
    variable.set(h)
    return variable.get


@pytest.mark.parametrize(
    "hold",
    [as_attribute, in_class, in_static_method, in_property, in_context],
    ids=lambda f: f.__name__,
)
def test_what_the_run_has_made_holds_a_tensor_that_a_branch_does_not_replace(
    checker, hold
):
    def program(x):
        h = x * 1
        kept = hold(h)
        if deep(x).sum() > 0:
            h = h * 2
        return h + kept()

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    for scale in (-1.0, 1.0, -1.0, 2.0, -2.0):
        check(x * scale)


def test_a_context_variable_keeps_a_tensor_that_a_branch_does_not_replace():
    variable = contextvars.ContextVar("variable", default=None)

    def program(x):
        h = x * 1
        variable.set(h)
        if deep(x).sum() > 0:
            h = h * 2
        return h + 1

    traced = trace(program, backend="eager")
    x = torch.tensor([1.0, 2.0])
    for scale in (-1.0, 1.0, -1.0, 2.0):
        assert torch.equal(traced(x * scale), program(x * scale))
        traced(x * scale)
        assert torch.equal(variable.get(), x * scale)


def gate(h):
    if deep(h).sum() > 0:
        h = h * 2
    return h


def by_key(x):
    best = max(iter([x - 0.5, x + 0.5]), key=lambda t: gate(t).data_ptr() * 0)
    return best + 1


def by_reduction(x):
    return functools.reduce(lambda a, b: gate(a) + b, [x, x * 3, x - 1])


def by_property(x):
    class Holder:
        def __init__(self, h):
            self.h = h

        @property
        def gated(self):
            return gate(self.h)

    h = x * 1
    return h + Holder(h).gated


def by_operand(x):
    h = x * 1
    return h + gate(h)


@pytest.mark.parametrize(
    "program",
    [by_key, by_reduction, by_property, by_operand],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("first", [-1.0, 1.0])
def test_what_callers_hold(checker, program, first):
    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    for scale in (first, 1.0, -1.0, 2.0, -2.0, 1.0, -1.0):
        check(x * scale)


def test_a_parameter_that_is_read_again(checker):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            w = self.weight
            if deep(x).sum() > 0:
                w = w * 2
            return w * self.weight * x

    model = Model()
    with torch.no_grad():
        check = checker(model)
        x = torch.tensor([1.0, 2.0])
        outcomes = [check(x * s) for s in (-1.0, 1.0, -2.0, 2.0)]
    assert "hit" not in outcomes[:1]


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_random_numbers_of_one_way(first):
    def program(x):
        h = deep(x)
        if h.sum() > 0:
            h = h + torch.rand(3)
        return h * torch.rand(3)

    traced = trace(program, backend="eager")
    x = torch.tensor([1.0, 2.0, 3.0])
    for scale in (first, *SCALES):
        torch.manual_seed(3)
        mine = traced(x * scale), torch.rand(2)
        torch.manual_seed(3)
        theirs = program(x * scale), torch.rand(2)
        assert all(map(torch.equal, mine, theirs))
    assert traced.stats()["hits"] == len(SCALES)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_writes_of_one_way(twins, first):
    class Model:
        def __init__(self):
            self.seen = torch.zeros(3)

        def step(self, x):
            h = deep(x)
            if h.sum() > 0:
                self.seen.add_(h)
                h.mul_(2)
            else:
                x.add_(1)
            return h + x

    pair = twins(Model)
    x = torch.tensor([1.0, 2.0, 3.0])
    outcomes = [pair.step(x * scale) for scale in (first, *SCALES)]
    assert outcomes == ["record", *["hit"] * len(SCALES)]


def test_gradients():
    weight = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)

    def program(x):
        h = deep(x * weight)
        if h.sum() > 0:
            y = h.exp()
        else:
            y = h**2 + weight
        return y.sum()

    traced = trace(program, backend="eager")
    for scale in (1.0, -1.0, 2.0, -2.0):
        x = torch.tensor([1.0, 2.0, 3.0]) * scale
        (mine,) = torch.autograd.grad(traced(x), weight)
        (theirs,) = torch.autograd.grad(program(x), weight)
        assert torch.equal(mine, theirs)
    assert traced.stats()["hits"] == 3


def to_double(h):
    return h.double()


def to_rows(h):
    return h.view(1, 3)


def raises(h):
    raise ValueError(h)


def counts(h):
    COUNTS.append(1)
    return h


def draws(h):
    return h * random.random()


def handles(h):
    try:
        return h + 1
    finally:
        COUNTS.count(1)


def exits(h):
    raise SystemExit(1)


def never_ends(h):
    n = 0
    while h is not None:
        n += 1
    return h


COUNTS: list[int] = []


@pytest.mark.parametrize(
    "function",
    [to_double, to_rows, raises, counts, draws, handles, exits, never_ends],
    ids=lambda f: f.__name__,
)
def test_ways_that_cannot_be_joined(checker, function):
    def program(x):
        h = deep(x)
        if h.sum() > 0:
            h = function(h)
        return h

    COUNTS.clear()
    state = random.getstate()
    check = checker(program)
    x = torch.tensor([1.0, 2.0, 3.0])
    assert check(-x) == "record"
    assert check.assumes
    assert check(-2 * x) == "hit"
    # What the other way would have done has not happened.
    assert COUNTS == []
    assert random.getstate() == state


def test_state_that_both_ways_write(twins):
    class Model:
        def __init__(self):
            self.count = 0

        def step(self, x):
            h = deep(x)
            if h.sum() > 0:
                self.count += 1
                return h
            return -h

    pair = twins(Model)
    x = torch.tensor([1.0, 2.0])
    outcomes = [pair.step(x * scale) for scale in (1.0, -1.0, -2.0, 2.0, -2.0)]
    assert outcomes[0] == "record"


def test_no_record_ends_in_a_way_that_nothing_guards():
    class Model:
        flag = False

        def step(self, x):
            h = deep(x)
            if h.sum() > 0:
                self.flag = True
                return h
            return -h

    traced = trace(Model().step, backend="eager")
    x = torch.tensor([1.0, 2.0])
    for scale in (1.0, -1.0, 2.0, -2.0, 1.0, -1.0):
        expected = Model().step(x * scale)
        assert torch.equal(traced(x * scale), expected), traced.explain()
    # Each way is a part of its own, behind the test.
    assert traced.stats()["hits"] > 0


def test_python_values_that_differ(checker):
    def program(x):
        h = deep(x)
        scale = 2.0
        if h.sum() > 0:
            scale = 3.0
        return h * scale

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    assert check(x) == "record"
    assert check.assumes
    check(-x)
    check(-x)
    assert check(-x) == "tensor-value"


def test_grad_mode_in_one_way(checker):
    def program(x):
        h = deep(x)
        if h.sum() > 0:
            torch.set_grad_enabled(False)
        return h * 2

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    assert check(-x) == "record"
    assert check.assumes
    assert torch.is_grad_enabled()


def test_a_way_that_does_nothing(checker):
    def program(x):
        h = deep(x)
        if h.sum() > 0:
            pass
        if h.sum() > 1:
            h.exp()
        return h

    check = checker(program)
    x = torch.tensor([1.0, 2.0])
    assert check(x) == "record"
    assert check(-x) == "hit"
    assert operators(check.traced) == []


def test_a_predicate_becomes_an_operator_when_it_fails(checker):
    def program(x):
        for i in range(4):
            if x[i] > 0:
                x = x * 2 + i
        return x

    check = checker(program)
    torch.manual_seed(1)
    outcomes = [check(torch.randn(4).sign()) for _ in range(12)]
    assert outcomes.count("record") <= 2
    assert outcomes[-1] == "hit"
    assert len(operators(check.traced)) in (0, 4)


def test_branches_within_branches_are_bounded(checker):
    def program(x):
        h = deep(x)
        if h[0] > 0:
            if h[1] > 0:
                if h[2] > 0:
                    if h[3] > 0:
                        if h[4] > 0:
                            h = h * 2
        return h

    check = checker(program)
    x = torch.ones(5)
    outcomes = [check(x), check(-x), check(x)]
    assert set(outcomes) <= {"record", "hit", "tensor-value"}


class Gated(nn.Module):
    """Blocks that a policy switches on and off, by the input."""

    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(8, 6)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))

    def forward(self, x):
        gates = self.gates(x)
        for i, block in enumerate(self.blocks):
            if gates[i] > 0:
                x = x + torch.relu(block(x))
        return x

    def gates(self, x):
        return deep(self.policy(x)).mean(0)


def test_gated_blocks():
    torch.manual_seed(5)
    model = Gated().eval()
    traced = trace(model, backend="eager")
    taken = set()
    with torch.no_grad():
        for _ in range(24):
            x = torch.randn(2, 8) * 3
            assert torch.equal(traced(x), model(x))
            taken.add(tuple((model.gates(x) > 0).tolist()))
    assert len(taken) > 3
    stats = traced.stats()
    assert stats["records"] <= 2
    assert stats["hits"] >= 22


def test_an_input_that_only_a_way_within_replaces():
    def program(x, m):
        h = deep(x)
        if h.sum() > 0:
            if h.max() > 10:
                h = h + 1
            else:
                m = h + 1
        return h, m

    traced = trace(program, backend="eager")
    m = torch.tensor([0.5, -0.5])
    for x in ([9.0, 3.0], [1.0, 2.0], [-1.0, -2.0], [9.0, 3.0], [1.0, 1.0]):
        x = torch.tensor(x)
        for mine, expected in zip(traced(x, m), program(x, m), strict=True):
            assert torch.equal(mine, expected), traced.explain()
    assert traced.stats()["hits"] >= 3
