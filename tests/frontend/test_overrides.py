"""Subclasses of built-in classes: what native code takes of them past their overrides.

Each program uses an object whose class overrides some methods in Python and calls those
of the built-in class from there. What the object holds changes between the calls.
"""

from __future__ import annotations

import collections
import copy
import math
import operator
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.frontend import trace

Use = Callable[[Any], Any]


def overriding(kind: Any, names: tuple[str, ...], refuses: bool = False) -> Any:
    """Return a subclass whose methods call those of the class, or answer nothing."""

    def override(name: str) -> Any:
        base = getattr(kind, name)
        if refuses:
            return lambda self, *args: NotImplemented
        return lambda self, *args: base(self, *args)

    return type("Sub", (kind,), {name: override(name) for name in names})


def give(*args: Any, **kwargs: Any) -> Any:
    return sum((*args, *kwargs.values()))


def filled(target: Any, source: Any) -> Any:
    target.update(source)
    return sum(target.values())


def spliced(source: Any) -> Any:
    target = [1.0]
    target.__setitem__(slice(0, 0), source)
    return sum(target)


def entry(mapping: Any) -> Any:
    match mapping:
        case {"a": value, **rest}:
            return value + len(rest)
    return 0


DICT_USES: dict[str, Use] = {
    "subscript": lambda s: s["a"],
    "get": lambda s: s.get("a"),
    "in": lambda s: ("b" in s) * 1.0,
    "len": lambda s: len(s),
    "dict": lambda s: sum(dict(s).values()),
    "display": lambda s: sum({**s}.values()),
    "update": lambda s: filled({}, s),
    "ordered": lambda s: sum(collections.OrderedDict(s).values()),
    "keywords": lambda s: give(**s),
    "union": lambda s: sum(({} | s).values()),
    "values": lambda s: sum(s.values()),
    "loop": lambda s: sum(s[key] for key in s),
    "copy": lambda s: copy.copy(s)["a"],
    "equal": lambda s: (s == {"a": 2.0}) * 1.0,
    "match": entry,
}
LIST_USES: dict[str, Use] = {
    "subscript": lambda s: s[0],
    "in": lambda s: (3.0 in s) * 1.0,
    "list": lambda s: sum(list(s)),
    "star": lambda s: give(*s),
    "sum": lambda s: sum(s),
    "spliced": spliced,
    "add": lambda s: sum([1.0] + s),  # noqa: RUF005
    "slice": lambda s: sum(s[:]),
    "sorted": lambda s: sorted(s)[-1],
    "less": lambda s: (s < [3.0]) * 1.0,
    "deque": lambda s: collections.deque(s)[0],
    "prod": lambda s: math.prod(s),
}
NUMBER_USES: dict[str, Use] = {
    "add": lambda s: s + 1,
    "reflected": lambda s: 1 + s,
    "less": lambda s: (s < 2) * 1.0,
    "int": lambda s: int(s),
    "float": lambda s: float(s),
    "sqrt": lambda s: math.sqrt(s),
    "sum": lambda s: sum([s, s]),
    "abs": lambda s: abs(s),
    "text": lambda s: len(f"{s:>5}") + len(str(s)),
}
DICTS = ("__getitem__", "__contains__", "__iter__", "keys", "get", "__len__", "__eq__")
LISTS = ("__getitem__", "__iter__", "__len__", "__eq__", "__contains__")
NUMBERS = ("__add__", "__radd__", "__int__", "__float__", "__lt__", "__bool__")


def check(use: Use, objects: list[Any]) -> None:
    """Compare a program with eager while what it looks at is exchanged."""
    holder = objects[:1]

    def program(x: Any) -> Any:
        return x * use(holder[0])

    fast = trace(program, backend="eager")
    for obj in objects:
        holder[0] = obj
        expected, found = program(torch.ones(1)), fast(torch.ones(1))
        assert torch.equal(found, expected), (obj, fast.explain())


@pytest.mark.sample(30)
@pytest.mark.parametrize("names", [*((name,) for name in DICTS), DICTS])
@pytest.mark.parametrize("use", DICT_USES)
def test_dicts(use: str, names: tuple[str, ...]) -> None:
    cls = overriding(dict, names)
    contents = [{"a": float(number)} for number in range(4)]
    contents += [{"a": 3.0, "b": float(number)} for number in range(3)]
    check(DICT_USES[use], [cls(content) for content in contents])


@pytest.mark.sample(24)
@pytest.mark.parametrize("names", [*((name,) for name in LISTS), LISTS])
@pytest.mark.parametrize("use", LIST_USES)
def test_lists(use: str, names: tuple[str, ...]) -> None:
    cls = overriding(list, names)
    contents = [[float(number)] for number in range(4)]
    contents += [[3.0, float(number)] for number in range(3)]
    check(LIST_USES[use], [cls(content) for content in contents])


@pytest.mark.sample(27)
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("use", NUMBER_USES)
def test_numbers(use: str, name: str, kind: Any) -> None:
    if not hasattr(kind, name):
        pytest.skip("not for this class")
    cls = overriding(kind, (name,))
    check(NUMBER_USES[use], [cls(number) for number in (1, 2, 3, 0, 1, 5)])


SYMBOLS: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "+": ("__add__", "__radd__", operator.add),
    "*": ("__mul__", "__rmul__", operator.mul),
    "==": ("__eq__", "__eq__", operator.eq),
    "<": ("__lt__", "__gt__", operator.lt),
    "in": ("__contains__", "__eq__", lambda left, right: right in left),
}
PAIRS: dict[str, tuple[Any, list[Any]]] = {
    "int": (int, [1, 2, 3]),
    "float": (float, [1.5, 2.5, 3.5]),
    "str": (str, ["a", "b", "ca"]),
    "list": (list, [[1.0], [2.0, 1.0], [3.0]]),
    "tuple": (tuple, [(1.0,), (2.0, 1.0), (3.0,)]),
}


@pytest.mark.sample(25)
@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_operands(symbol: str, kind: str, side: str, refuses: bool) -> None:
    """One operand has its own class of methods; either of the two changes."""
    forward, reflected, apply = SYMBOLS[symbol]
    base, values = PAIRS[kind]
    for name in (forward, reflected):
        if not hasattr(base, name):
            continue
        own, plain = overriding(base, (name,), refuses), overriding(base, ())
        left, right = (own, plain) if side == "left" else (plain, own)

        def use(pair: Any) -> Any:
            try:
                return zlib.crc32(repr(apply(*pair)).encode()) % 1000
            except TypeError:
                return -1

        first = [(left(value), right(values[0])) for value in values * 2]
        second = [(left(values[0]), right(value)) for value in values * 2]
        check(use, first)
        check(use, second)
