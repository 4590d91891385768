"""The differential mode: wrong records are found, right ones pass."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import warnings
import zlib
from collections import OrderedDict, deque

import numpy
import pytest
import torch
from torch import nn

from magweld.frontend import trace
from magweld.frontend.differential import check
from magweld.frontend.differential.check import (
    CheckError,
    ElsewhereError,
    Ending,
    compare,
    run_checked,
)
from magweld.frontend.differential.describe import Walk
from magweld.frontend.differential.snapshot import Snapshot
from magweld.frontend.state.steps import Constant

X = torch.tensor([1.0, 2.0, 3.0])


def checked(function, *args):
    traced = trace(function, backend="eager", check=True)
    traced(*args)
    assert traced.stats()["records"] == 1, traced.explain()
    return traced


def break_graph(traced, change):
    record = traced.records[0]
    compiled = record.compiled
    record.compiled = lambda *inputs: tuple(change(t) for t in compiled(*inputs))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.log = []

    def forward(self, x):
        y = self.linear(x)
        self.total.add_(y.detach().sum(0))
        self.log.append(y)
        x.mul_(2)
        return y.t(), x.view(-1), torch.rand(2)


def test_versions_are_put_back():
    def program(x, base):
        part = base[:2]
        part += x
        return base._version

    base, twin, x = torch.zeros(4), torch.zeros(4), torch.ones(2)
    traced = trace(program, backend="eager", check=True)
    for _ in range(4):
        assert traced(x, base) == program(x, twin)
    assert base._version == twin._version


def test_right_hits_pass_and_effects_happen_once():
    model, twin = Model(), Model()
    twin.load_state_dict(model.state_dict())
    traced = trace(model, backend="eager", check=True)
    for seed in range(3):
        x = torch.randn(2, 3)
        z = x.clone()
        torch.manual_seed(seed)
        mine = traced(x)
        torch.manual_seed(seed)
        theirs = twin(z)
        assert all(map(torch.equal, mine, theirs))
        assert torch.equal(x, z)
        assert torch.equal(model.total, twin.total)
    assert len(model.log) == 3
    stats = traced.stats()
    assert (stats["checked"], stats["hits"], stats["skipped"]) == (2, 2, 0)


def breaks_in_a_loop(x, log):
    total = x * 2.0
    for factor in (0.5, 2.0, 3.0):
        total = total.mul_(factor) + 1.0
        log.append(zlib.crc32(b"part"))
        total = total + log[-1] % 2
    return total, log


def test_parts_of_a_program_with_breaks_are_compared():
    traced = trace(breaks_in_a_loop, backend="eager", check=True)
    for _ in range(3):
        mine, theirs = [], []
        expected = breaks_in_a_loop(X.clone(), theirs)
        assert torch.equal(traced(X.clone(), mine)[0], expected[0])
        assert mine == theirs  # a break that had run twice would have added one more
    stats = traced.stats()
    # The last pass of the loop ends its iterator, which cannot be put back.
    assert stats["checked"] == stats["hits"] == 6, traced.explain()
    assert (stats["calls"], stats["skipped"]) == (3, 2)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_wrong_part_is_found(number):
    def program(x):
        y = x * 2.0
        zlib.crc32(b"")
        z = y + 1.0
        zlib.crc32(b"")
        return z - y

    traced = trace(program, backend="eager", check=True)
    traced(X)
    traced(X)
    record = traced.records[number]
    compiled = record.compiled
    record.compiled = lambda *inputs: tuple(t + 1.0 for t in compiled(*inputs))
    with pytest.raises(CheckError, match="values"):
        traced(X)


def test_parts_behind_one_that_cannot_be_compared():
    def program(x):
        with torch.no_grad():
            y = x * 2.0
            zlib.crc32(b"")
            y = y + 1.0
        z = y - x
        zlib.crc32(b"")
        return z * y

    traced = trace(program, backend="eager", check=True)
    for _ in range(6):
        assert torch.equal(traced(X), (X + 1.0) * (X * 2.0 + 1.0))
    stats = traced.stats()
    assert stats["skipped"] == 1
    assert stats["checked"] > 2
    assert stats["records"] == 3


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda t: t + 1e-6, "result.values"),
        (lambda t: t.double(), "result.dtype"),
        (lambda t: t.clone(), "storage"),
        (lambda t: torch.stack([t, t], 1)[:, 0], "result.strides"),
        (lambda t: t.requires_grad_(), "result.requires_grad"),
        (lambda t: -0.0 * t if t.eq(0).all() else t * 1.001, "result.values"),
    ],
)
def test_a_wrong_result_is_found(change, path):
    traced = checked(lambda x: x.view(3), X)
    break_graph(traced, change)
    with pytest.raises(CheckError, match=path):
        traced(torch.tensor([1.0, 2.0, 4.0]))


def test_zeros_of_both_signs_differ():
    traced = checked(lambda x: x * 0.0, X)
    break_graph(traced, lambda t: -t)
    with pytest.raises(CheckError, match=r"result\.values"):
        traced(X.clone())


def test_nans_of_numpy_are_equal():
    class State:
        pass

    def program(x, value):
        state.value = numpy.float32(value)
        return x + 1

    state, nan = State(), float("nan")
    traced = trace(program, backend="eager", check=True)
    for _ in range(3):
        traced(torch.ones(2), nan)
    assert traced.stats()["hits"] == 2


def test_a_missing_side_effect_is_found():
    log = []

    def program(x):
        y = x + 1
        log.append(y)
        return y

    traced = checked(program, X)
    record = traced.records[0]
    record.mock = dataclasses.replace(record.mock, steps=())
    with pytest.raises(CheckError, match="log"):
        traced(X)


def test_a_wrong_type_or_value_is_found():
    traced = checked(lambda x: (x + 1, 1), X)
    record = traced.records[0]
    for wrong in (Constant((X, 1)), Constant([X + 1, 1]), Constant((X + 1, True))):
        record.mock = dataclasses.replace(record.mock, result=wrong)
        with pytest.raises(CheckError, match="result"):
            traced(X)


def test_an_external_object_where_eager_makes_a_new_one_is_found():
    box = [1]

    def program(x):
        return [1], x + len(box)

    traced = checked(program, X)
    record = traced.records[0]
    record.mock = dataclasses.replace(record.mock, result=Constant((box, X + 1)))
    with pytest.raises(CheckError, match=r"result\[0\]"):
        traced(X)


def test_extra_random_numbers_are_found():
    traced = checked(lambda x: x + 1, X)
    break_graph(traced, lambda t: t + 0 * torch.rand(3))
    with pytest.raises(CheckError, match="get_rng_state"):
        traced(X)


def test_a_raised_exception_is_compared():
    table = torch.zeros(4, 2)
    traced = checked(lambda i: table[i] + 1, torch.tensor([1, 2]))
    with pytest.raises(IndexError):
        traced(torch.tensor([1, 9]))
    break_graph(traced, lambda t: t)
    traced.records[0].compiled = lambda *inputs: (torch.zeros(2, 2),)
    with pytest.raises(CheckError, match="exception"):
        traced(torch.tensor([1, 9]))


def test_tolerance_is_that_of_the_backend():
    def nearly(gm, example_inputs):
        return lambda *inputs: tuple(t * (1 + 1e-7) for t in gm(*inputs))

    traced = trace(lambda x: x.exp(), backend=nearly, check=True)
    for _ in range(3):
        traced(X)
    assert traced.stats()["checked"] == 2


def test_iterators_within_reach_are_not_checked():
    box = [zip([1, 2])]

    def program(x):
        return x + len(box)

    traced = checked(program, X)
    assert torch.equal(traced(X), X + 1)
    assert traced.stats()["skipped"] == 1
    assert traced.breaks[-1].id == "check-skipped"


def test_calls_that_reach_too_much_are_not_checked(monkeypatch):
    monkeypatch.setattr(check, "MOST_OBJECTS", 1000)
    many = [[number] for number in range(2000)]

    def program(x):
        return x + len(many)

    traced = checked(program, X)
    assert torch.equal(traced(X), X + 2000)
    assert traced.stats()["skipped"] == 1
    assert "more than 1,000 objects" in str(traced.breaks[-1])


def test_what_a_break_does_happens_once(capsys):
    def program(x):
        y = x + 1
        print("here")
        return y * 2

    traced = trace(program, backend="eager", check=True)
    for _ in range(5):
        assert torch.equal(traced(X), (X + 1) * 2)
    assert capsys.readouterr().out == "here\n" * 5


def test_the_environment_variable(monkeypatch):
    monkeypatch.setenv("MAGWELD_CHECK", "1")
    traced = trace(lambda x: x + 1, backend="eager")
    traced(X)
    traced(X)
    assert traced.stats()["checked"] == 1
    assert "checked" not in trace(lambda x: x, backend="eager", check=False).stats()


class Slots:
    __slots__ = ("a", "b")


def test_snapshots_put_everything_back():
    slots = Slots()
    slots.a = 1
    tensor = torch.zeros(3)
    holder = nn.Module()
    holder.kept = 1
    state = [
        *([1, [2]], {"a": 1, "b": 2}, OrderedDict(x=1), deque([1, 2], 2), {1, 2}),
        *(slots, tensor, holder, lambda: state),
    ]
    walk = Walk()
    before = walk.describe([("state", state)])
    snapshot = Snapshot(walk.objects)
    state[0][1].append(3)
    state[1].update(c=3)
    del state[1]["a"]
    state[2].move_to_end("x")
    state[2]["y"] = 1
    state[3].append(9)
    state[4].add(7)
    slots.b = 2
    del slots.a
    tensor.add_(1)
    tensor.grad = torch.ones(3)
    holder.other = 2
    del holder.kept
    assert compare(before, Walk().describe([("state", state)])) is not None
    snapshot.restore()
    assert compare(before, Walk().describe([("state", state)])) is None


def difference(left, right):
    mine, theirs = Walk().describe([("x", left)]), Walk().describe([("x", right)])
    return compare(mine, theirs)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([X, X], [X, X.clone()]),
        ([X, X[:]], [X, X.clone()]),
        (deque([1], 2), deque([1])),
        (lambda: 1, lambda: 2),
        ({1: 2}, {True: 2}),
    ],
)
def test_descriptions_tell_values_apart(left, right):
    assert difference(left, left) is None
    assert difference(left, right) is not None


def test_cycles_and_deep_structures_can_be_described():
    left: list = []
    for _ in range(3000):
        left = [left]
    left.append(left)
    assert difference(left, left) is None


def test_a_single_element_with_a_stride_is_compared() -> None:
    traced = trace(lambda x: (x * 2)[:1, 0], backend="eager", check=True)
    results = [traced(torch.randn(4, 4)) for _ in range(3)]
    assert results[0].stride() == (4,)
    assert traced.stats()["checked"] == 2


def test_views_without_history_are_put_back() -> None:
    weight = nn.Parameter(torch.ones(3, 3))
    kept: list[list[torch.Tensor]] = []

    def program(rows: torch.Tensor) -> None:
        rows[:1].add_(torch.ones(3))
        kept.append(list(rows))

    traced = trace(program, backend="eager", check=True)
    with torch.no_grad():
        for _ in range(3):
            traced(weight)
    assert traced.stats()["hits"] == 2
    assert traced.stats()["checked"] == 1  # then `kept` holds what autograd refuses
    assert weight[0].tolist() == [4.0, 4.0, 4.0]


def draws_from_its_own_generator():
    generator = random.Random(4)
    return lambda x: x + generator.gauss(0, 1) + generator.choice([1, 2, 3])


def holds_a_bound_method_at_a_break():
    generator = random.Random(4)

    def program(x):
        draw = generator.random
        x = x * 2
        zlib.crc32(b"a")
        return x + draw()

    return program


def asks_a_class_method_behind_a_break():
    def program(x):
        made = dict.fromkeys
        x = x * 2
        zlib.crc32(b"a")
        return x + len(made([1, 2]))

    return program


def calls_a_traced_program():
    inner = trace(lambda x: x * 2, backend="eager")
    return lambda x: inner(x) + 1


def calls_a_checked_module():
    inner = trace(nn.Linear(3, 3), backend="eager", check=True)
    return lambda x: inner(x) + 1


def counts_its_attributes():
    class Counting:
        calls = 0
        value = 3.0

        def __getattribute__(self, name):
            cls = type(self)
            cls.calls += name == "__class__"
            return object.__getattribute__(self, name)

    counting = Counting()
    return lambda x: x * counting.value + Counting.calls


def keeps_instances_in_a_metaclass():
    class Meta(type):
        instances = {}

        def __call__(cls):
            if cls not in Meta.instances or Meta.instances[cls].calls > 1:
                Meta.instances[cls] = super().__call__()
            return Meta.instances[cls]

    class Single(metaclass=Meta):
        calls = 0

    def program(x):
        single = Single()
        single.calls += 1
        return x * single.calls

    return program


def has_a_function_of_a_library_at_a_break():
    def program(x):
        context = torch.no_grad()(lambda value: value * 2)
        zlib.crc32(b"a")
        return x + context(x)

    return program


@pytest.mark.parametrize(
    "make",
    [
        has_a_function_of_a_library_at_a_break,
        counts_its_attributes,
        keeps_instances_in_a_metaclass,
        draws_from_its_own_generator,
        holds_a_bound_method_at_a_break,
        asks_a_class_method_behind_a_break,
        calls_a_traced_program,
        calls_a_checked_module,
    ],
)
def test_right_hits_are_compared_without_an_alarm(make):
    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    traced = trace(make(), backend="eager", check=True)
    for _ in range(5):
        assert torch.equal(traced(X), eager(X))
    assert traced.stats()["checked"] >= 2
    assert traced.stats()["skipped"] == 0


def test_another_bound_method_is_found():
    first, second = [], []
    described = [
        Walk({id(first): 0, id(second): 1}).describe([("m", method)])
        for method in (first.append, first.append, first.pop, second.append)
    ]
    assert compare(described[0], described[1]) is None
    assert compare(described[0], described[2]) is not None
    assert compare(described[0], described[3]) is not None


def test_the_hit_warns_although_the_eager_run_has(monkeypatch, capsys):
    def program(x):
        warnings.warn("careful", stacklevel=1)
        return x + 1

    def count(function):
        globals().get("__warningregistry__", {}).clear()
        found = []
        for number in range(4):
            if number == 2:
                globals()["__warningregistry__"].clear()
            function(X)
            found.append(capsys.readouterr().err)
        return found

    def show(*warning):
        print("warned", file=sys.stderr)

    traced = trace(program, backend="eager", check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr(warnings, "showwarning", show)
        expected = ["warned\n", "", "warned\n", ""]
        assert count(program) == expected
        assert count(traced) == expected
    assert traced.stats()["checked"] == 3


def test_a_part_whose_graph_raises_is_not_compared():
    """Eager stops at the break, what runs instead of the graph goes to the end."""

    def program(x):
        y = x * 2
        zlib.crc32(b"a break")
        return y + 1

    def packed(tensor):
        return tensor

    traced = trace(program, backend="eager", check=True)
    for _ in range(3):
        assert torch.equal(traced(X), program(X))
    with torch.autograd.graph.saved_tensors_hooks(packed, packed):
        for _ in range(3):
            assert torch.equal(traced(X), program(X))
    assert {broken.id for broken in traced.breaks} >= {"saved-tensor-hooks"}


def test_a_part_whose_graph_raises_and_whose_rest_raises():
    def program(x, index):
        y = x[index] * 2
        zlib.crc32(b"a break")
        return y + 1

    traced = trace(program, backend="eager", check=True)
    for number in (0, 1, 2):
        index = torch.tensor([number])
        assert torch.equal(traced(X, index), program(X, index))
    with pytest.raises(IndexError):
        traced(X, torch.tensor([7]))
    assert torch.equal(traced(X, index), program(X, index))


EMPTY = {
    "empty": lambda x: (torch.empty(3), x),
    "empty_like": lambda x: (torch.empty_like(x).view(1, 3), x),
    "new_empty": lambda x: ([x.new_empty(3)], x),
}


def has_emptied_memory(x):
    made = x * 2
    made.untyped_storage().resize_(0)
    return made, x + 1


def has_parts_of_many_sizes(x):
    made = torch.nested.nested_tensor([x, x[:1]])
    zlib.crc32(b"a")
    return made, x + made.to_padded_tensor(0.0)


def has_quantized_numbers(x):
    made = torch.quantize_per_tensor(x, 0.1, 2, torch.quint8)
    zlib.crc32(b"a")
    return made, made.dequantize() + x


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    "program", [has_emptied_memory, has_parts_of_many_sizes, has_quantized_numbers]
)
def test_tensors_that_cannot_be_copied_are_not_compared(program):
    traced = trace(program, backend="eager", check=True)
    for _ in range(4):
        assert torch.equal(traced(X)[1], program(X)[1])
    assert traced.stats()["hits"] > 0, traced.explain()


@pytest.mark.parametrize("name", EMPTY)
def test_memory_that_nobody_has_filled_is_not_compared(name):
    """Two runs find there whatever was there before."""
    traced = checked(EMPTY[name], X)
    record = traced.records[0]
    compiled = record.compiled
    count = [0.0]

    def other_memory(*inputs):
        count[0] += 1.0
        return tuple(t.fill_(count[0]) if t is not X else t for t in compiled(*inputs))

    record.compiled = other_memory
    for _ in range(2):
        traced(X)
    assert traced.stats()["skipped"] == 2, traced.explain()


def test_memory_that_is_filled_is_compared():
    traced = checked(lambda x: torch.empty(3).copy_(x), X)
    traced(X)
    break_graph(traced, lambda t: t + 1)
    with pytest.raises(CheckError):
        traced(X)


def test_a_call_that_cannot_be_put_back_ends_as_the_program_does():
    log = []

    def program(x, items):
        log.append("called")
        y = x * 2
        os.getpid()
        return y + next(items)

    traced = trace(program, backend="eager", check=True)
    x = torch.ones(2).requires_grad_()
    items = (n for n in (1, 2, 3, 4))
    assert traced(x, items).sum() == 6
    # Hooks on saved tensors: a hit with effects runs eagerly, here to its end.
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert traced(x, items).sum() == 8
    assert log == ["called", "called"]
    ids = {broken.id for broken in traced.breaks}
    assert ids >= {"saved-tensor-hooks", "check-skipped"}


def test_a_run_to_another_break_goes_on_where_it_cannot_be_undone():
    x, weight = torch.ones(3), torch.ones(3, requires_grad=True)

    def eager():
        x.mul_(weight)  # a history that cannot be taken back
        raise ElsewhereError("file:1", Ending("the program there", None))

    outcome = run_checked(eager, lambda: "the record", lambda: [("x", x)], exact=True)
    assert outcome.skipped
    assert outcome.ending.give() == "the program there"


def test_a_run_to_another_break_is_undone_where_it_can_be():
    items = []

    def eager():
        items.append(1)
        raise ElsewhereError("file:1", Ending("the program there", None))

    def traced():
        assert items == []
        return "the record"

    outcome = run_checked(eager, traced, lambda: [("items", items)], exact=True)
    assert outcome.skipped
    assert outcome.ending.give() == "the record"


def test_hooks_on_saved_tensors_run_once() -> None:
    weight = torch.nn.Parameter(torch.randn(3))
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor

    traced = trace(lambda x: (x * weight).tanh(), backend="eager", check=True)
    for number in range(1, 4):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            traced(torch.randn(3))
        assert len(packed) == 2 * number
    assert traced.stats()["skipped"] == 2
