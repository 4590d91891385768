"""What the way of a branch that is not taken writes must not be seen.

Each program makes or gets an object, and writes to it in an `if` or `while` on a tensor
whose truth no cheap guard tells. The first call runs the other way on trial.
"""

from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import itertools
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.operators.predicates import MAX_OPERATORS
from magweld.graphs.control_operators import IfOperator

PROGRAMS: list[Callable[[Tensor, Tensor], Any]] = []


def program(function: Callable[[Tensor, Tensor], Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


def holds(m: Tensor) -> Tensor:
    """Return a truth that follows from too many operators for a guard."""
    for _ in range(MAX_OPERATORS + 1):
        m = m * 1.01
    return m.sum() > 0


class Plain:
    n = 0

    def grow(self) -> None:
        self.n += 1


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


@dataclasses.dataclass
class Data:
    n: int = 0
    items: list[int] = dataclasses.field(default_factory=list)


class Single:
    """A class whose `__new__` returns what it has kept."""

    kept: Any = None

    def __new__(cls) -> Any:
        if cls.kept is None:
            cls.kept = object.__new__(cls)
            cls.kept.n = 0
        return cls.kept


class Managed:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __enter__(self) -> Self:
        self.log.append("in")
        return self

    def __exit__(self, *error: object) -> None:
        self.log.append("out")


class Property:
    def __init__(self) -> None:
        self._n = 0

    @property
    def n(self) -> int:
        return self._n

    @n.setter
    def n(self, value: int) -> None:
        self._n = value


@program
def keywords(x: Tensor, m: Tensor, **kw: int) -> Any:
    if holds(m):
        kw["b"] = 1
    return x, sorted(kw)


@program
def captured_parameter(x: Tensor, m: Tensor) -> Any:
    if holds(m):
        x = x * 2
    return sum([x * k for k in (1.0, 2.0)])


@program
def captured_by_lambda(x: Tensor, m: Tensor) -> Any:
    if holds(m):
        x = x + 1
    else:
        x = x - 1
    return (lambda: x)()


@program
def nonlocal_number(x: Tensor, m: Tensor) -> Any:
    n = 0

    def grow() -> None:
        nonlocal n
        n += 1

    if holds(m):
        grow()
    return x, n


@program
def generator(x: Tensor, m: Tensor) -> Any:
    g = (v for v in [1, 2, 3])
    if holds(m):
        next(g)
    return x, list(g)


@program
def generator_loop(x: Tensor, m: Tensor) -> Any:
    def numbers() -> Iterator[int]:
        yield from range(4)

    g = numbers()
    if holds(m):
        for v in g:
            x = x + v
            break
    return x, list(g)


@program
def iterator(x: Tensor, m: Tensor) -> Any:
    it = iter([1, 2, 3])
    if holds(m):
        next(it)
    return x, list(it)


@program
def enumerated(x: Tensor, m: Tensor) -> Any:
    it = enumerate(["a", "b"])
    if holds(m):
        next(it)
    return x, list(it)


@program
def counted(x: Tensor, m: Tensor) -> Any:
    it = itertools.count()
    if holds(m):
        next(it)
    return x, next(it)


@program
def namespace(x: Tensor, m: Tensor) -> Any:
    s = types.SimpleNamespace(n=0)
    if holds(m):
        s.n = 1
    return x, s.n


@program
def attribute(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    if holds(m):
        a.n = 1
    return x, a.n


@program
def attribute_by_method(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    if holds(m):
        a.grow()
    return x, a.n


@program
def attribute_by_setattr(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    if holds(m):
        setattr(a, "k", 1)  # noqa: B010
    return x, hasattr(a, "k")


@program
def attribute_in_dict(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    if holds(m):
        vars(a)["n"] = 5
    return x, a.n


@program
def slot(x: Tensor, m: Tensor) -> Any:
    a = Slotted()
    if holds(m):
        a.n = 1
    return x, a.n


@program
def field_of_dataclass(x: Tensor, m: Tensor) -> Any:
    a = Data()
    if holds(m):
        a.items.append(a.n)
        a.n = 1
    return x, a.n, a.items


@program
def property_with_setter(x: Tensor, m: Tensor) -> Any:
    a = Property()
    if holds(m):
        a.n = 3
    return x, a.n


@program
def kept_instance(x: Tensor, m: Tensor) -> Any:
    Single.kept = None
    a = Single()
    if holds(m):
        Single().n += 1
    return x, a.n


@program
def attribute_of_class(x: Tensor, m: Tensor) -> Any:
    class Inner:
        n = 0

    if holds(m):
        Inner.n = 1
    return x, Inner.n


@program
def attribute_of_function(x: Tensor, m: Tensor) -> Any:
    def inner() -> None:
        pass

    if holds(m):
        inner.n = 1  # type: ignore[attr-defined]
    return x, getattr(inner, "n", 0)


@program
def attribute_of_tensor(x: Tensor, m: Tensor) -> Any:
    y = x * 2
    if holds(m):
        y.note = 1  # type: ignore[attr-defined]
    return y, hasattr(y, "note")


@program
def attribute_of_exception(x: Tensor, m: Tensor) -> Any:
    e = ValueError("a")
    if holds(m):
        e.note = 1  # type: ignore[attr-defined]
    return x, getattr(e, "note", 0)


@program
def keywords_of_partial(x: Tensor, m: Tensor) -> Any:
    p = functools.partial(dict, a=1)
    if holds(m):
        p.keywords["b"] = 2
    return x, p()


@program
def callback(x: Tensor, m: Tensor) -> Any:
    q: list[int] = []
    if holds(m):
        list(map(q.append, [1, 2]))
    return x, q


@program
def callback_of_set(x: Tensor, m: Tensor) -> Any:
    q: set[int] = set()
    if holds(m):
        list(map(q.add, [1, 2]))
    return x, q


@program
def listed(x: Tensor, m: Tensor) -> Any:
    q = [1]
    if holds(m):
        q += [2]
        q.append(3)
    return x, q


@program
def nested_list(x: Tensor, m: Tensor) -> Any:
    q = copy.deepcopy({"k": [1]})
    if holds(m):
        q["k"].append(2)
    return x, q


@program
def popped_list(x: Tensor, m: Tensor) -> Any:
    inner: list[int] = []
    q = [inner]
    if holds(m):
        q[0].append(2)
    return x, inner


@program
def repeated_list(x: Tensor, m: Tensor) -> Any:
    q = [[0]] * 2
    if holds(m):
        q[1].append(2)
    return x, q


@program
def split_text(x: Tensor, m: Tensor) -> Any:
    q = "a b".split()
    if holds(m):
        q.append("c")
    return x, q


@program
def default_dict(x: Tensor, m: Tensor) -> Any:
    d: dict[str, list[int]] = collections.defaultdict(list)
    if holds(m):
        d["k"].append(1)
    return x, dict(d)


@program
def ordered_dict(x: Tensor, m: Tensor) -> Any:
    d = collections.OrderedDict(a=1, b=2)
    if holds(m):
        d.move_to_end("a")
    return x, list(d)


@program
def counter(x: Tensor, m: Tensor) -> Any:
    c = collections.Counter("ab")
    if holds(m):
        c.update("a")
    return x, dict(c)


@program
def deque(x: Tensor, m: Tensor) -> Any:
    d = collections.deque([1, 2])
    if holds(m):
        d.rotate()
    return x, list(d)


@program
def bytes_of_its_own(x: Tensor, m: Tensor) -> Any:
    b = bytearray(b"ab")
    if holds(m):
        b[0] = 0
    return x, bytes(b)


@program
def array_of_its_own(x: Tensor, m: Tensor) -> Any:
    a = array.array("i", [1, 2])
    if holds(m):
        a.append(3)
    return x, list(a)


@program
def set_default(x: Tensor, m: Tensor) -> Any:
    d: dict[str, int] = {}
    if holds(m):
        d.setdefault("k", 1)
    return x, d


@program
def deleted_key(x: Tensor, m: Tensor) -> Any:
    d = {"a": 1, "b": 2}
    if holds(m):
        del d["a"]
    return x, d


@program
def deleted_attribute(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    a.n = 3
    if holds(m):
        del a.n
    return x, a.n


@program
def context_manager(x: Tensor, m: Tensor) -> Any:
    log: list[str] = []
    if holds(m):
        with Managed(log):
            x = x + 1
    return x, log


@program
def exit_stack(x: Tensor, m: Tensor) -> Any:
    log: list[str] = []
    with contextlib.ExitStack() as stack:
        if holds(m):
            stack.callback(log.append, "end")
    return x, log


VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


@program
def context_variable(x: Tensor, m: Tensor) -> Any:
    VARIABLE.set(0)
    if holds(m):
        VARIABLE.set(1)
    return x, VARIABLE.get()


GLOBAL = 0


@program
def global_number(x: Tensor, m: Tensor) -> Any:
    global GLOBAL
    GLOBAL = 0
    if holds(m):
        GLOBAL = 1
    return x, GLOBAL


@program
def sorted_in_place(x: Tensor, m: Tensor) -> Any:
    q = [3, 1, 2]
    if holds(m):
        q.sort()
    return x, q


@program
def both_ways(x: Tensor, m: Tensor) -> Any:
    q: list[str] = []
    if holds(m):
        q.append("yes")
    else:
        q.append("no")
    return x, q


@program
def in_a_while(x: Tensor, m: Tensor) -> Any:
    g = (v for v in range(10))
    t = holds(m).float()
    while t > 0:
        t = t - 1
        x = x + 1
        next(g)
    return x, list(g)


@program
def attribute_in_a_while(x: Tensor, m: Tensor) -> Any:
    a = Plain()
    t = holds(m).float() * 2
    while t > 0:
        t = t - 1
        a.grow()
    return x, a.n


@program
def in_a_callee(x: Tensor, m: Tensor) -> Any:
    a = Plain()

    def change(b: Plain) -> Tensor:
        b.n = 7
        return x + 1

    y = change(a) if holds(m) else x
    return y, a.n


@program
def branch_in_a_branch(x: Tensor, m: Tensor) -> Any:
    a, b = Plain(), Plain()
    if holds(m):
        a.n = 1
        if holds(m - 5):
            b.n = 2
    return x, a.n, b.n


@program
def own_objects(x: Tensor, m: Tensor) -> Any:
    """What a way has made itself it may write to."""
    if holds(m):
        made = Plain()
        made.n = 3
        parts = [x * made.n]
        parts.append(x)
        kept = {"a": parts[0]}
        kept["b"] = parts[1]

        def scale(y: Tensor, factor: float = 2.0) -> Tensor:
            return y * factor

        x = scale(kept["a"] + kept["b"])
    return x


CHECKS = [(-1.0, -1.0, 1.0, -1.0, 1.0), (1.0, 1.0, -1.0, 1.0, -1.0)]


@pytest.mark.sample(34)
@pytest.mark.parametrize("signs", CHECKS, ids=["no-first", "yes-first"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_the_way_not_taken_leaves_nothing(
    function: Callable[[Tensor, Tensor], Any], signs: tuple[float, ...]
) -> None:
    fast = trace(function, backend="eager")
    for sign in signs:
        x, m = torch.arange(1.0, 4.0), torch.full((3,), sign)
        outcomes = []
        for call in (function, fast):
            try:
                outcomes.append(repr(call(x, m)))
            except Exception as error:
                outcomes.append(repr(error))
        assert outcomes[1] == outcomes[0]


def test_a_way_that_writes_to_its_own_objects_is_an_operator() -> None:
    fast = trace(own_objects, backend="eager")
    for sign in (-1.0, 1.0, -1.0, 1.0):
        fast(torch.arange(1.0, 4.0), torch.full((3,), sign))
    assert fast.stats()["hits"] == 3
    targets = [node.target for node in fast.records[0].graph.graph.nodes]
    assert any(isinstance(target, IfOperator) for target in targets)


OLDER_ITERATORS: dict[str, Callable[[], Iterator[Any]]] = {
    "list": lambda: iter([1, 2, 3]),
    "range": lambda: iter(range(3)),
    "dict": lambda: iter({1: 2, 3: 4}),
    "reversed": lambda: reversed([1, 2, 3]),
    "enumerate": lambda: enumerate("abc"),
    "zip": lambda: zip(iter("abc"), iter([1, 2]), strict=False),
}


@pytest.mark.parametrize("loops", [False, True], ids=["next", "for"])
@pytest.mark.parametrize("make", OLDER_ITERATORS.values(), ids=OLDER_ITERATORS)
def test_an_iterator_of_the_caller_is_not_advanced_on_trial(
    make: Callable[[], Iterator[Any]], loops: bool
) -> None:
    older = make()

    def advance(x: Tensor, m: Tensor) -> Tensor:
        if holds(m):
            if loops:
                for _ in older:
                    break
            else:
                next(older)
            x = x + 1
        return x

    fast = trace(advance, backend="eager")
    x = torch.arange(1.0, 4.0)
    for _ in range(3):
        assert torch.equal(fast(x, -x), x)
    assert list(older) == list(make())


def test_a_lock_is_not_left_taken_by_a_way_on_trial() -> None:
    lock, kept = threading.Lock(), Plain()

    def take(x: Tensor, m: Tensor) -> Tensor:
        if holds(m):
            lock.acquire()
            kept.grow()
            lock.release()
        return x * 2

    fast = trace(take, backend="eager")
    x = torch.arange(1.0, 4.0)
    for sign in (-1, 1, -1):
        fast(x, x * sign)
        assert not lock.locked()
    assert kept.n == 1


@pytest.mark.parametrize("in_place", [False, True])
def test_a_generator_of_the_caller_gives_nothing_on_trial(in_place: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()

    def draw(x: Tensor, m: Tensor) -> Tensor:
        if holds(m):
            if in_place:
                x = torch.empty(3).uniform_(generator=generator)
            else:
                x = torch.rand(3, generator=generator)
        return x * 2

    fast = trace(draw, backend="eager")
    x = torch.arange(1.0, 4.0)
    assert torch.equal(fast(x, -x), x * 2)
    assert torch.equal(generator.get_state(), before)


class Ending:
    """An object whose end can be seen."""

    ended: ClassVar[list[str]] = []

    def __del__(self) -> None:
        self.ended.append("end")


def test_no_object_comes_to_its_end_on_trial() -> None:
    def make(x: Tensor, m: Tensor) -> Tensor:
        if holds(m):
            Ending()
            x = x + 1
        return x

    fast = trace(make, backend="eager")
    x = torch.arange(1.0, 4.0)
    for sign in (-1, -1, 1, -1):
        Ending.ended.clear()
        fast(x, x * sign)
        assert Ending.ended == ["end"] * (sign > 0)
