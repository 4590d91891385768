"""Effects and results that a hit must repeat: state, identity, aliases, order."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend.traced import trace

COUNTS = {"a": 0}
LATEST = None
Pair = namedtuple("Pair", "first second")  # noqa: PYI024


@dataclass
class Result:
    value: torch.Tensor
    tags: list = field(default_factory=list)


class Output(OrderedDict):
    """An ordered dict with attributes, as model libraries return."""

    def __init__(self, **entries):
        super().__init__()
        for key, value in entries.items():
            self[key] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Node:
    def __init__(self, value):
        self.value = value
        self.link = self


class State:
    def __init__(self):
        self.items = []
        self.table = {"old": 1}
        self.seen = set()
        self.queue = deque([1, 2])
        self.ordered = OrderedDict(a=1, b=2)
        self.last = None
        self.buffer = torch.zeros(2)
        self.setup = {}


def run_steps(twins, step, outcomes, *args):
    """Run a method on twins and compare the outcome of each call."""

    class Stepper(State):
        pass

    Stepper.step = step
    pair = twins(Stepper)
    assert [pair.step(*args) for _ in outcomes] == outcomes, pair.traced.explain()


x = torch.tensor([1.0, 2.0])


def test_appended_tensor(twins):
    def step(self, x):
        y = x + 1.0
        self.items.append(y)
        self.items.append(y)
        return y

    run_steps(twins, step, ["record", "hit", "hit"], x)


def test_appended_tensor_is_the_result():
    items = []

    def step(x):
        y = x * 2.0
        items.append(y)
        items.extend([y, 1])
        return y

    traced = trace(step, backend="eager")
    for number in range(3):
        y = traced(x)
        assert items[-3] is items[-2] is y
        assert len(items) == 3 * (number + 1)
    assert traced.stats()["hits"] == 2


def test_inserted_element_needs_the_old_content(twins):
    def step(self, x):
        self.items[:] = []
        self.items.insert(0, x * 2.0)
        return len(self.items)

    run_steps(twins, step, ["record", "record"], x)


def test_dict_entries(twins):
    def step(self, x):
        self.table["new"] = x + 1.0
        self.table.update(other=2, third=[x])
        self.table.setdefault("new", 5)
        return self.table["other"]

    run_steps(twins, step, ["record", "hit"], x)


def test_deleted_entry(twins):
    def step(self, x):
        self.setup["k"] = 1
        del self.setup["k"]
        return self.table.pop("gone", 3)

    run_steps(twins, step, ["record", "hit"], x)


def test_set_and_deque(twins):
    def step(self, x):
        self.seen.add(3)
        self.queue.append(x.shape[0])
        self.queue.popleft()
        return len(self.queue)

    run_steps(twins, step, ["record", "record", "hit"], x)


def test_ordered_dict(twins):
    def step(self, x):
        self.ordered["c"] = x * 2.0
        return list(self.ordered)

    run_steps(twins, step, ["record", "record", "hit"], x)


def test_attributes(twins):
    def step(self, x):
        self.last = x * 2.0
        self.fresh = (self.last, self.last)
        return self.last

    run_steps(twins, step, ["record", "hit"], x)


def test_deleted_attribute(twins):
    def step(self, x):
        self.temporary = 1
        del self.temporary
        return x + 1.0

    run_steps(twins, step, ["record", "hit"], x)


def test_tensor_state_in_place(twins):
    def step(self, x):
        self.buffer.add_(x)
        self.buffer[0] = 7.0
        return self.buffer

    run_steps(twins, step, ["record", "hit", "hit"], x)


def test_replaced_tensor_state(twins):
    def step(self, x):
        self.buffer = self.buffer * 0.5 + x
        return self.buffer.sum()

    run_steps(twins, step, ["record", "hit", "hit"], x)


def test_global_write():
    def step(x):
        global LATEST
        LATEST = x * 2.0
        COUNTS["a"] = 5
        return LATEST

    traced = trace(step, backend="eager")
    for number in range(2):
        y = traced(x + number)
        assert LATEST is y
        assert torch.equal(y, (x + number) * 2.0)
    assert traced.stats()["hits"] == 1


def test_nonlocal_write():
    last = None

    def step(x):
        nonlocal last
        last = x + 1.0
        return x

    traced = trace(step, backend="eager")
    for number in range(2):
        result = traced(x * number)
        assert torch.equal(last, x * number + 1.0)
    assert traced.stats()["hits"] == 1
    argument = x.clone()
    assert traced(argument) is argument
    assert result is not argument


@pytest.mark.parametrize(
    "make",
    [
        lambda x: [x + 1.0, (x, {"k": x * 2.0})],
        lambda x: Pair(x * 2.0, 3),
        lambda x: Result(x * 2.0, ["a"]),
        lambda x: Output(loss=x.sum(), logits=x * 2.0),
        lambda x: {"a": None, 1: 2.5, (1, 2): "s", "n": -0.0},
        lambda x: {1, 2, 3},
        lambda x: (x.shape, x.dtype, x.device, slice(1, 2), range(3)),
        lambda x: OrderedDict([("b", x), ("a", x + 1.0)]),
        lambda x: torch.max(x.view(1, 2), dim=1),
        lambda x: deque([x * 2.0]),
        lambda x: None,
        lambda x: x,
    ],
    ids="list namedtuple dataclass output dict set values ordered structseq deque"
    " none argument".split(),
)
def test_results(checker, make):
    check = checker(make)
    assert check(x) == "record"
    assert check(x * 3.0) == "hit"


def test_aliases_and_cycles_in_results():
    def make(x):
        y = x * 2.0
        shared = [y]
        node = Node(shared)
        shared.append(node)
        return {"a": shared, "b": shared, "view": y.view(-1), "y": y}

    traced = trace(make, backend="eager")
    for number in range(2):
        result = traced(x + number)
        assert result["a"] is result["b"]
        assert result["a"][0] is result["y"]
        assert result["a"][1].value is result["a"]
        assert result["a"][1].link is result["a"][1]
        assert result["view"].data_ptr() == result["y"].data_ptr()
    assert traced.stats()["hits"] == 1


def test_slots_and_closures_in_results(checker):
    def make(x):
        slots = Slots(x * 2.0)
        k = 3.0

        def scale(t, offset=1.0):
            return t * k + offset

        return slots, scale

    traced = trace(make, backend="eager")
    for number in range(2):
        slots, scale = traced(x + number)
        assert torch.equal(slots.a, (x + number) * 2.0)
        assert not hasattr(slots, "b")
        assert scale(1.0) == 4.0
        assert scale.__name__ == "scale"
    assert traced.stats()["hits"] == 1


def test_arguments_are_returned_as_themselves():
    def make(a, items):
        return a, items, items[0]

    traced = trace(make, backend="eager")
    for _ in range(2):
        a, items = torch.ones(2), [torch.zeros(1)]
        result = traced(a, items)
        assert result[0] is a
        assert result[1] is items
        assert result[2] is items[0]
    assert traced.stats()["hits"] == 1


def test_argument_written_through_a_view():
    def write(a):
        a.view(-1)[0] = 9.0
        a.t().mul_(2.0)
        return a

    traced = trace(write, backend="eager")
    for _ in range(2):
        mine, eager = torch.ones(2, 2), torch.ones(2, 2)
        assert traced(mine) is mine
        assert torch.equal(mine, write(eager))
    assert traced.stats()["hits"] == 1


def test_list_argument_is_changed_in_place():
    def fill(items, x):
        items[0] = x * 2.0
        items.append(items[0])

    traced = trace(fill, backend="eager")
    for _ in range(2):
        items = [0, 1]
        assert traced(items, x) is None
        assert torch.equal(items[0], x * 2.0)
        assert items[2] is items[0]
    assert traced.stats()["hits"] == 1


def test_slot_write():
    slots = Slots(1)

    def step(x):
        slots.b = x + 1.0
        return slots.b

    traced = trace(step, backend="eager")
    for number in range(2):
        y = traced(x + number)
        assert slots.b is y
    assert traced.stats()["hits"] == 1


def test_random_numbers_keep_their_order(checker):
    def noisy(x):
        unused = torch.rand(3)
        return x + torch.rand(2), torch.nn.functional.dropout(x, 0.5), unused.shape

    traced = trace(noisy, backend="eager")
    for seed in range(3):
        torch.manual_seed(seed)
        mine, after = traced(x), torch.rand(1)
        torch.manual_seed(seed)
        eager = noisy(x)
        assert torch.equal(after, torch.rand(1))
        assert torch.equal(mine[0], eager[0])
        assert torch.equal(mine[1], eager[1])
    assert traced.stats()["hits"] == 2


def test_grad_mode_switch_is_an_effect():
    def switch(x):
        torch.set_grad_enabled(False)
        return x * 2.0

    traced = trace(switch, backend="eager")
    for _ in range(2):
        with torch.enable_grad():
            traced(x)
            assert not torch.is_grad_enabled()
    assert traced.stats()["hits"] == 1


def test_gradients_flow_through_a_hit():
    def loss(x, w):
        with torch.no_grad():
            scale = (x * w).sum()
        return (x * w * scale).sum()

    traced = trace(loss, backend="eager")
    grads = []
    for function in (loss, traced, traced):
        w = torch.tensor([1.0, 3.0], requires_grad=True)
        function(x, w).backward()
        grads.append(w.grad)
    assert torch.equal(grads[0], grads[1])
    assert torch.equal(grads[0], grads[2])
    assert traced.stats()["hits"] == 1


def test_removed_elements():
    kept = [3, 1, 2, 1]

    def step(x, kept):
        kept.remove(1)
        return x + kept[0]

    traced = trace(step, backend="eager")
    for _ in range(3):
        mine, theirs = list(kept), list(kept)
        assert torch.equal(traced(x, mine), step(x, theirs))
        assert mine == theirs == [3, 2, 1]
    assert traced.stats()["hits"] == 2


def test_list_made_again():
    def step(x, kept):
        kept.__init__((4, 5))
        return x + kept[0]

    traced = trace(step, backend="eager")
    for _ in range(3):
        mine, theirs = [1], [1]
        assert torch.equal(traced(x, mine), step(x, theirs))
        assert mine == theirs == [4, 5]


def test_a_slot_that_is_filled_and_emptied_is_empty():
    class Slots:
        __slots__ = ("value",)

    def program(x, state):
        state.value = 1
        del state.value
        return x + 1

    traced, state = trace(program, backend="eager"), Slots()
    for number in range(4):
        if number % 2:
            state.value = 2
        traced(torch.ones(2), state)
        assert not hasattr(state, "value")
    assert traced.stats()["hits"] == 3


def test_a_variable_of_a_closure_that_is_emptied_is_empty():
    value = 1

    def program(x):
        nonlocal value
        value = 2
        del value
        return x + 1

    def is_empty():
        try:
            return value is None
        except NameError:
            return True

    traced = trace(program, backend="eager")
    for number in range(4):
        if number % 2:
            value = 3
        traced(torch.ones(2))
        assert is_empty()


@dataclass(frozen=True)
class Key:
    name: str
    parts: Any = ()


class ByValue:
    v = 0

    def __init__(self, v: int) -> None:
        self.v = v

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.v == other.v

    def __hash__(self) -> int:
        return hash(self.v)


class ByTable(ByValue):
    def __init__(self, table: dict[Any, int]) -> None:
        self.table = table

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.table.values())))


KEYED: dict[str, Callable[[Tensor], Any]] = {
    "frozen dataclass": lambda x: {Key("a"): x * 2, Key("b"): x},
    "in a set": lambda x: (x, {Key("a")}),
    "by value": lambda x: {ByValue(1): x * 2, ByValue(0): x},
    "in a tuple": lambda x: {(Key("a"), 1): x},
    "in a frozenset": lambda x: (x, frozenset([Key("a")])),
    "nested": lambda x: {Key("a", (Key("b"), frozenset([1]))): {Key("c"): x}},
    "by a table": lambda x: {ByTable({1: 2}): x},
    "by a table of keys": lambda x: {ByTable({Key("a"): 2}): x},
    "ordered": lambda x: OrderedDict([(Key("a"), x), (Key("b"), x)]),
}


@pytest.mark.parametrize("name", KEYED)
def test_keys_are_hashed_when_they_have_their_attributes(name: str) -> None:
    function = KEYED[name]
    fast = trace(function, backend="eager")
    for _ in range(3):
        found, expected = fast(torch.ones(2)), function(torch.ones(2))
        mine, theirs = (
            next(part for part in parts if not isinstance(part, Tensor))
            for parts in (
                found if isinstance(found, tuple) else (found,),
                expected if isinstance(expected, tuple) else (expected,),
            )
        )
        assert list(map(hash, mine)) == list(map(hash, theirs))
        assert all(key in mine for key in theirs) or "table" in name
        assert type(mine) is type(theirs)
