"""Objects whose end runs code: a finalizer, the callback of a weak reference.

A recording keeps objects. What their ends do must be seen by the program all the same,
in the observed call and in later ones.
"""

from __future__ import annotations

import collections
import contextvars
import itertools
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magweld.frontend import trace
from magweld.frontend.state.ends import WATCHED, code_at_end


class Box:
    pass


class Slotted:
    __slots__ = ("item",)


class Final:
    """Tells its end."""

    def __init__(self, log: list[int]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append(1)


class World:
    """What a program works on; `log` counts the ends."""

    shared: Any = None

    def __init__(self) -> None:
        self.log: list[int] = []
        self.references: list[Any] = []
        self.box: Any = Box()
        self.slotted = Slotted()
        self.items: list[Any] = []
        self.table: dict[str, Any] = {}
        self.queue: Any = collections.deque(maxlen=1)
        self.variable: Any = contextvars.ContextVar("variable", default=None)
        self.tensor: Any = torch.zeros(1)
        self.kind: Any = type("Kind", (), {"item": None})
        self.values: Any = weakref.WeakValueDictionary()

    def note(self, reference: Any) -> None:
        self.log.append(1)


def watched(world: World) -> Any:
    """Return an object whose end is noted by the callback of a weak reference."""
    obj = Box()
    world.references.append(weakref.ref(obj, world.note))
    return obj


ENDING = {
    "finalizer": lambda world: [Final(world.log)],
    "finalizer, deep": lambda world: SimpleNamespace(
        a=(lambda f: lambda: f)(Final(world.log))
    ),
    "callback": watched,
    "callback, deep": lambda world: {"a": (watched(world),)},
}


def drops_attribute(world: World) -> None:
    world.box.item = None


def drops_met_attribute(world: World) -> None:
    item = world.box.item
    item = None  # noqa: F841
    del world.box.item


def drops_by_setattr(world: World) -> None:
    setattr(world.box, "item", None)  # noqa: B010


def drops_slot(world: World) -> None:
    world.slotted.item = None


def drops_class_attribute(world: World) -> None:
    world.kind.item = None


def drops_tensor_attribute(world: World) -> None:
    world.tensor.item_of = None


def drops_context(world: World) -> None:
    world.variable.set(None)


def drops_element(world: World) -> None:
    del world.items[0]


def drops_appended(world: World) -> None:
    world.items.append(1)
    world.items.clear()


def drops_by_pop(world: World) -> None:
    world.table.pop("item")


def drops_by_update(world: World) -> None:
    world.table.update(item=1)


def drops_by_length(world: World) -> None:
    world.queue.append(1)


DROPS = [value for name, value in list(globals().items()) if name.startswith("drops_")]


def fill(world: World, item: Any) -> None:
    world.box.item = world.slotted.item = world.kind.item = item
    world.tensor.item_of = item
    world.variable.set(item)
    world.items[:] = [item]
    world.table["item"] = item
    world.queue.append(item)


def give(world: World, drop: Any, item: Any) -> None:
    """Put an object only where a program drops it."""
    fill(world, None)
    holder, name = {
        drops_slot: (world.slotted, "item"),
        drops_class_attribute: (world.kind, "item"),
        drops_tensor_attribute: (world.tensor, "item_of"),
    }.get(drop, (world.box, "item"))
    if drop is drops_context:
        world.variable.set(item)
    elif drop in (drops_element, drops_appended):
        world.items[:] = [item]
    elif drop in (drops_by_pop, drops_by_update):
        world.table["item"] = item
    elif drop is drops_by_length:
        world.queue.append(item)
    else:
        setattr(holder, name, item)


def run(program: Any, prepare: Any, fast: bool) -> list[Any]:
    """Return results and ends of five calls on a world of its own."""
    world = World()

    def bound(x: Any) -> Any:
        return program(world, x)

    function = trace(bound, backend="eager") if fast else bound
    seen = []
    for _ in range(5):
        prepare(world)
        seen.append((function(torch.ones(1)).item(), len(world.log)))
    return seen


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("ending", ENDING)
def test_what_a_write_drops_ends_at_the_write(drop: Any, ending: str) -> None:
    def program(world: World, x: Any) -> Any:
        x = x * 2
        drop(world)
        return x + len(world.log)

    def prepare(world: World) -> None:
        give(world, drop, ENDING[ending](world))

    eager = run(program, prepare, fast=False)
    assert eager[-1] == (7.0, 5)
    assert run(program, prepare, fast=True) == eager


def references_its_object(world: World, x: Any) -> Any:
    obj = Box()
    reference = weakref.ref(obj, world.note)
    del obj
    return x * 2 if reference() is None else x


def references_by_keyword_class(world: World, x: Any) -> Any:
    obj = Box()
    reference = weakref.KeyedRef(obj, world.note, 3)
    del obj
    return x * 2 if reference() is None else x


def makes_a_proxy(world: World, x: Any) -> Any:
    obj = Box()
    proxy = weakref.proxy(obj, world.note)
    del obj
    world.box.proxy = proxy
    return x * 2


def references_a_tensor(world: World, x: Any) -> Any:
    made = x + 1
    reference = weakref.ref(made, world.note)
    x = made * 2
    del made
    return x + (reference() is None)


def asks_for_a_tensor(world: World, x: Any) -> Any:
    made = x + 1
    reference = weakref.ref(made)
    x = made * 2
    del made
    return x + (reference() is None)


def fills_a_weak_dictionary(world: World, x: Any) -> Any:
    obj = Box()
    world.values["a"] = obj
    x = x + len(world.values)
    del obj
    return x + 10 * len(world.values)


def calls_back_at_the_end(world: World, x: Any) -> Any:
    obj = Box()
    weakref.finalize(obj, world.log.append, 1)
    del obj
    return x + 1


@pytest.mark.parametrize(
    "program",
    [
        references_its_object,
        references_by_keyword_class,
        makes_a_proxy,
        references_a_tensor,
        asks_for_a_tensor,
        fills_a_weak_dictionary,
        calls_back_at_the_end,
    ],
)
def test_objects_of_the_run_end_when_the_program_lets_go(program: Any) -> None:
    def with_count(world: World, x: Any) -> Any:
        return program(world, x) + len(world.log)

    eager = run(with_count, lambda world: None, fast=False)
    assert run(with_count, lambda world: None, fast=True) == eager


def test_an_object_with_a_callback_may_be_read_and_kept() -> None:
    box, log = Box(), []
    box.item = Box()
    box.item.scale = 2.0
    reference = weakref.ref(box.item, log.append)

    def program(x: Any) -> Any:
        box.calls = 1
        return x * box.item.scale

    fast = trace(program, backend="eager")
    for _ in range(3):
        assert fast(torch.ones(1)).item() == 2.0
    assert fast.stats()["hits"] == 2
    assert reference() is box.item
    assert not log


def counted(log: list[str], depth: int = 0) -> Any:
    try:
        if depth:
            yield from counted(log, depth - 1)
        yield 1.0
        yield 2.0
    finally:
        log.append("closed")


def counted_within(log: list[str], depth: int) -> Any:
    try:
        try:
            yield from range(1 + depth)
            yield 1.0
        except (IndexError, KeyError):
            log.append("not reached")
    finally:
        log.append("closed")


def counted_by_index(log: list[str], depth: int) -> Any:
    """What `collections.abc.Sequence.__iter__` does: its end runs nothing."""
    number = 0
    try:
        while number < 9:
            yield [1.0, 2.0 + depth][number]
            number += 1
    except IndexError:
        log.append("at the end")


def counted_and_caught(log: list[str], depth: int) -> Any:
    try:
        yield 1.0 + depth
        yield 2.0
    except BaseException:
        log.append("caught")
        raise


ITERATED = {
    "generator": lambda g: g,
    "enumerate": lambda g: (v for _, v in enumerate(g)),
    "zip": lambda g: (v for v, _ in zip(g, "ab", strict=False)),
    "map": lambda g: map(abs, g),
    "slice": lambda g: itertools.islice(g, 5),
    "chain": lambda g: map(abs, itertools.chain([3.0], g)),
}


MAKERS = [counted, counted_within, counted_by_index, counted_and_caught]


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("name", ITERATED)
@pytest.mark.parametrize("make", MAKERS)
def test_a_generator_that_a_native_iterator_holds_ends_with_it(
    make: Any, name: str, depth: int
) -> None:
    def program(x: Any, log: list[str]) -> Any:
        for number in ITERATED[name](make(log, depth)):
            x = x + number
            break
        log.append("behind")
        return x

    fast = trace(program, backend="eager")
    for _ in range(3):
        mine: list[str] = []
        eager: list[str] = []
        assert torch.equal(fast(torch.ones(2), mine), program(torch.ones(2), eager))
        assert mine == eager, fast.explain()


class Squares(collections.abc.Sequence):
    """Iterated over by the generator of its base class, which expects an exception."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> float:
        if index >= 3:
            raise IndexError
        return float(index**2)


def test_a_generator_whose_end_runs_nothing_may_be_held() -> None:
    def program(x: Any) -> Any:
        for number, (square, other) in enumerate(zip(Squares(), Squares())):  # noqa: B905
            x = x * square + other + number
            if number == 1:
                break
        return x

    fast = trace(program, backend="eager")
    for _ in range(3):
        assert torch.equal(fast(torch.ones(2)), program(torch.ones(2)))
    assert fast.stats()["hits"] == 2
    assert not fast.breaks


def test_notes_of_torch_are_no_end_that_runs_code():
    from torch._dynamo.utils import ExactWeakKeyDictionary

    module, notes = torch.nn.Linear(2, 2), ExactWeakKeyDictionary()
    notes[module] = 1
    assert code_at_end(module) == ""
    watched = weakref.ref(module, lambda reference: None)
    assert code_at_end(module) == WATCHED
    del watched
    notes_of_others = weakref.WeakKeyDictionary({module: 1})
    assert code_at_end(module) == WATCHED
    del notes_of_others


class Keeps(torch.nn.Module):
    """Keeps its last result, with its history; `factor` makes further records."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.factor = 1
        self.last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * self.factor
        self.last = y
        return y


@pytest.mark.parametrize("race", ["0", "1"])
def test_results_of_compiled_code_may_be_dropped_by_a_recorded_run(
    race: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGWELD_RACE", race)
    module = Keeps()
    fast = trace(module, compile="now", dynamic=False)
    for call in range(12):
        module.factor = 1 + call // 3
        y = fast(torch.ones(2, 4))
        assert module.last is y
        y.sum().backward()
    assert not fast.breaks
    assert fast.stats()["records"] == 4
