"""Numbers that containers get while a native iterator or view of them is alive."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from typing import NamedTuple

import pytest
import torch

from magweld.frontend.traced import trace


class Pair(NamedTuple):
    a: float
    b: float


# What is made of a list before its last element changes, and how that is taken.
MADE = {
    "iter": (iter, list),
    "map": (lambda items: map(abs, items), list),
    "python": (lambda items: map(lambda item: item, items), list),
    "zip": (zip, lambda made: [*itertools.chain.from_iterable(made)]),
    "enumerate": (enumerate, lambda made: [item for _, item in made]),
    "filter": (lambda items: filter(None, items), lambda made: [*made]),
    "reversed": (reversed, lambda made: sorted(made)),
    "chain": (lambda items: itertools.chain(items, [0]), lambda made: list(made)[:-1]),
    "nested": (lambda items: itertools.chain.from_iterable([items]), tuple),
    "islice": (lambda items: itertools.islice(items, 5), collections.deque),
    "tee": (lambda items: itertools.tee(items)[0], list),
    "cycle": (itertools.cycle, lambda made: [next(made), next(made)]),
    "accumulate": (lambda items: itertools.accumulate(items, max), list),
    "pairs": (itertools.pairwise, lambda made: next(made)),
    "starred": (iter, lambda made: (lambda *items: items)(*made)),
    "unpacked": (iter, lambda made: (lambda first, last: (first, last))(*made)),
    "reduced": (
        lambda items: map(functools.partial(functools.reduce, operator.add), [items]),
        list,
    ),
    "method": (lambda items: map(items.__getitem__, [0, 1]), list),
    "taking": (lambda items: map(items.pop, [1]), list),
    "suspended": (lambda items: rest_of(items), list),
}


def rest_of(items):
    yield from items


def last_of(make, take):
    def program(k):
        items = [0.5, 1.0]
        made = make(items)
        items[1] = k
        return take(made)[-1]

    return program


def last_of_values(k):
    entries = {"a": 0.5}
    views = entries.values(), entries.items()
    entries["b"] = k
    return list(views[0])[-1], dict(views[1])["b"], sum(views[0])


def put_by_a_method(k):
    items = [k, k]
    made = map(items.__setitem__, [0], [5.0])
    items[0] = k
    list(made)
    items[1:] = ()
    return items[0]


def put_by_an_order(k):
    items = [5.0, k]
    sorted([0], key=items.pop)
    return items[0]


def replaced(k):
    return Pair(1, 2)._replace(b=k).b


PROGRAMS = {
    **{name: last_of(*pair) for name, pair in MADE.items()},
    "views": last_of_values,
    "put": put_by_a_method,
    "ordered": put_by_an_order,
    "replaced": replaced,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_they_are_what_was_written_last(program):
    traced = trace(lambda x, k: (x + 1, program(k)), backend="eager", check=True)
    x = torch.ones(2)
    for k in (2.0, 3.0, 5.0, 5.0, 5.0, 6.5, 7.0):
        assert traced(x, k)[1] == program(k)
    assert traced.stats()["hits"] >= 2
