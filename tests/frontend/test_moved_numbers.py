"""Numbers that keep changing, and native code that moves them between containers."""

from __future__ import annotations

import collections
import copy
import functools
from typing import NamedTuple

import pytest
import torch

from magweld.frontend.traced import trace

X = torch.tensor([1.0, -2.0, 3.0])


class Pair(NamedTuple):
    a: float
    b: float


class Plain(list):
    """A list of another class."""


class Doubles(list):
    def __iter__(self):
        return (2 * one for one in list.__iter__(self))


class Settings:
    def __init__(self, **settings):
        self.__dict__.update(settings)


class State:
    """What programs may write to; its numbers are there before the call."""

    def __init__(self):
        self.items = [1.5, 2.5, 4.0]
        self.table = {"a": 1.5, "b": 2.5}


def part_of_list(x, k, s):
    many = [k, k + 1, 3.0]
    return x * many[1:][0] + many[:2][0] + many[::-1][2]


def part_of_older_list(x, k, s):
    s.items[0] = k
    return x * s.items[:2][0] + s.items[1:][0]


def items(x, k, s):
    for name, v in {"a": k, "bcd": 2.0}.items():
        x = x * v + len(name)
    return x


def values(x, k, s):
    for v in {"a": k, "b": k + 1}.values():
        x = x * v
    return x


def comprehension(x, k, s):
    made = {name: v * 2 for name, v in {"a": k}.items()}
    return x * made["a"] + sum([v * 2 for v in {"a": k}.values()])


def zipped(x, k, s):
    for a, b in zip([k, k + 1], (1.0, k * 2), strict=True):
        x = x * a + b
    return x


def zipped_with_counts(x, k, s):
    for i, a, c in zip(range(2), [k, k + 1], "ab", strict=True):
        x = x * a + i * ord(c)
    return x


def zipped_in_enumerate(x, k, s):
    for i, (a, b) in enumerate(zip([k, k + 1], [2.0, 3.0], strict=False), 3):
        x = x * a + b * i
    return x


def numbered(x, k, s):
    for i, a in enumerate([k, 2.0, k + 1]):
        x = x * a + i
    return x


def backward(x, k, s):
    for a in reversed([k, 3.0]):
        x = x * a + 1
    return x


def of_all(x, k, s):
    many = [k, k + 1, 2.0]
    return x * sum(many) + max(many) - min(many) + sum({"a": k}.values())


def extremes_of_older_list(x, k, s):
    s.items[1] = k
    return x * max(s.items) + min(s.items) + sum(s.items)


def grows(x, k, s):
    many = [1.0]
    many.extend([k])
    many.insert(0, k + 1)
    many += [k + 2]
    return x * many[0] + many[2] * many.pop() + (many + [k])[3] + ([k] * 3)[2]  # noqa: RUF005


def writes_state(x, k, s):
    s.items.insert(1, k)
    s.items.extend((k + 1, 7.0))
    x = x * s.items.pop(0)
    s.items.reverse()
    s.items.pop()
    s.items.pop(0)
    s.items += [k * 2]
    s.items.pop(0)
    return x


def writes_table(x, k, s):
    s.table.update({"a": k}, c=k + 1)
    x = x * s.table.pop("c") + s.table.setdefault("d", k * 2)
    s.table["b"] = s.table.pop("d", 1.0)
    return x * s.table.pop("e", k)


def attributes(x, k, s):
    return x * Settings(k=k, other=2.0).k


def copies(x, k, s):
    many = list({"a": k, "b": 2.0}.values())
    d = dict(zip(("a", "b"), many, strict=True))
    return (
        x * many.copy()[0]
        + d["a"]
        + tuple(many)[-2]
        + dict(d, c=k)["c"]
        + d.copy()["a"]
    )


def named(x, k, s):
    pair = Pair(k, 2.0)
    return x * pair[:1][0] + (pair + (k,))[2] + sum(pair) + list(pair)[-2]  # noqa: RUF005


MOVING = [
    *(part_of_list, part_of_older_list, items, values, comprehension, zipped),
    *(zipped_in_enumerate, numbered, backward, of_all, extremes_of_older_list, grows),
    *(zipped_with_counts, writes_state, writes_table, attributes, copies, named),
]


def _compare(program, numbers):
    """Call a program with other numbers each time; return what became of the calls."""
    mine, theirs = State(), State()
    traced = trace(lambda x, k: program(x, k, mine), backend="eager")
    for k in numbers:
        expected = program(X, k, theirs)
        assert torch.equal(traced(X, k), expected), (k, traced.explain())
        assert vars(mine) == vars(theirs), (k, traced.explain())
        kinds = [
            [*map(type, s.items), *map(type, s.table.values())] for s in (mine, theirs)
        ]
        assert kinds[0] == kinds[1]
    return traced


@pytest.mark.parametrize("program", MOVING, ids=lambda p: p.__name__)
def test_moved_numbers_need_no_record_for_each_value(program):
    traced = _compare(program, [1.25 + 1.5 * n for n in range(12)])
    assert traced.stats()["hits"] >= 4, traced.explain()


def equal_numbers(x, k, s):
    a, b, c = [k, 2][::1], {"a": 2, "b": k}, (k, 1, 2)
    for one, two in zip(a, b.values(), strict=True):
        x = x * one + two
    return x * c[1:][0] + [*a, *b.values()][1]


def written_while_walked(x, k, s):
    many, d = [k, 1], {"a": 1, "b": k}
    for i, v in enumerate(many):
        many[1 - i] = v + k
        x = x * v
    for name, v in d.items():
        d["b" if name == "a" else "a"] = v + 2
        x = x + v
    view = d.values()
    d["a"] = k + 5
    return x * sum(view) + list(view)[-2] + many[0]


def walked_twice(x, k, s):
    it = iter([k, 2, k + 3, 4])
    for a, b in zip(it, it, strict=True):
        x = x * a + b
    rest = enumerate([k, k + 1])
    next(rest)
    for i, v in rest:
        x = x * v + i
    return x


def numbers_that_place(x, k, s):
    many = [5.0, 6.0, 7.0, 8.0, 9.0]
    x = (
        x * many[: int(k) % 3 + 1][-1]
        + many.pop(int(k) % 3)
        + ([1.0, k] * (int(k) % 4 + 1))[1]
    )
    many.insert(int(k) % 3, k)
    for i, v in enumerate(many, int(k)):
        x = x * i + v
    d = {k: 1.0, 2.5: k}
    return x * d.pop(k) + d.setdefault(k, 3.0) + dict(zip([k], [k * 2], strict=True))[k]


def order_changes(x, k, s):
    many = [k, 4.0, 10 - k, 4]
    return (
        x * max(many)
        + min(many) * many.index(max(many))
        + (1 if any([k > 5, k < 3]) else 2)
    )


def kinds_change(x, k, s):
    big = max([k, 4.25 if int(k) % 2 else 4])
    return x * big if type(big) is int else x + big


def not_a_number(x, k, s):
    nan = float("nan") if int(k) % 3 == 0 else k
    return torch.nan_to_num(x * max([nan, k]) + min([k, nan]), 5.0)


def other_classes(x, k, s):
    a, b = Doubles([k, 1.0]), Plain([k, 2.0])
    for one, two in zip(a, b, strict=True):
        x = x * one + two
    b.extend([k + 1])
    ordered = collections.OrderedDict(a=k, b=2.0)
    ordered.move_to_end("a")
    for name, v in ordered.items():
        x = x * v + ord(name)
    return x * sum(a) + b[:1][0] + max(b) + collections.deque([k]).pop()


def raises(x, k, s):
    try:
        [k].pop(3)
    except IndexError:
        x = x + k
    try:
        for a, b in zip([k, k + 1], [k], strict=True):
            x = x * a + b
    except ValueError:
        x = x * k
    return x * functools.reduce(lambda a, b: a * b, [k, 2.0])


def nested(x, k, s):
    inner = [k, 1.0]
    outer = [inner] * 2 + [[k]]
    outer[0][0] += 1
    for row in outer[1:]:
        x = x * row[0]
    a, b = zip(*[(k, 1.0), (2.0, 3.0)], strict=True)
    s.table.update(a=copy.copy(inner)[0])
    return x * a[0] + b[1] + sum(outer[2]) + dict([("a", k)])["a"]


def keeps_in_state(x, k, s):
    s.items[:] = [k, *s.items[:2]]
    for i, v in enumerate(s.items):
        s.items[i] = v + 1
    s.table = dict(s.table.items()) | {"z": k}
    s.table.pop("y", None)
    del s.items[0]
    s.items.extend(s.items)
    del s.items[2:]
    s.items.append(s.table["z"])
    return x * s.items[0]


def places_go(x, k, s):
    many, rows, table = [30.0, 10.0, k], [[20.0, 10.0, k]], {"a": k, "b": 2.0, "c": 1.0}
    many.pop(0)
    rows[0].pop(1)
    table.pop("a")
    last = torch.tensor([*table.values()])[0]
    return x * k + torch.tensor(many)[0] + torch.tensor(rows)[0, 0] + last


HOSTILE = [
    *(equal_numbers, written_while_walked, walked_twice, numbers_that_place),
    *(order_changes, kinds_change, not_a_number, other_classes, raises, nested),
    *(keeps_in_state, places_go),
]


@pytest.mark.parametrize("program", HOSTILE, ids=lambda p: p.__name__)
def test_moved_numbers_are_those_of_the_call(program):
    numbers = [2, 1, 3, 2, 4, 5, 1, 2, 7, 3]
    _compare(program, numbers)
    _compare(program, [1.25 * n for n in numbers])
    _compare(program, [2.5, 2.5, 2.0, 2, 2.5, 3, 0.0, -0.0, 1, True])


def equal_beside_appended(x, k, c):
    c.append(k)
    return x * c[0] + c[-1]


def length_beside_appended(x, k, c):
    c.append(k)
    return x * len(c) * c[0]


def extended_after_a_slice(x, k, c):
    d = c[:2]
    c.extend([k, 2])
    return x * c[0] + d[0]


def moved_after_appended(x, k, c):
    c.append(k)
    c.insert(0, c.pop())
    return x * c[2] + c.pop(0)


@pytest.mark.parametrize(
    "program",
    [
        *(equal_beside_appended, length_beside_appended),
        *(extended_after_a_slice, moved_after_appended),
    ],
    ids=lambda p: p.__name__,
)
@pytest.mark.parametrize(
    "numbers",
    [[30, 10, 20, 6, 30, 4, 8, 12], [4, 1, 4, 3, 2, 5], [2, 5, 4, 7, 1, 9, 11]],
)
def test_lists_of_the_caller_hold_the_numbers_of_the_call(program, numbers):
    fast = trace(program, backend="eager")
    for k in numbers:
        # The first number is one of the others in some calls.
        mine, theirs = [8, 2 * k, 5], [8, 2 * k, 5]
        assert torch.equal(fast(X, k, mine), program(X, k, theirs))
        assert mine == theirs
    assert fast.stats()["hits"] > 0
