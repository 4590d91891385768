"""Writes in place: values, identities, through callees, into containers."""

from __future__ import annotations

import pytest
import torch
from topic_checks import HIT, MISS, agree, run_and_check, traced


def inplace_add(a, b):
    a += b
    return a


PAIRS = [
    lambda: (1, 2),
    lambda: (1.5, 2.5),
    lambda: ([1], [2, 3]),
    lambda: (torch.ones(2), torch.ones(2)),
    lambda: (torch.ones(2), 1.5),
]


@pytest.mark.parametrize("make", PAIRS, ids=range(len(PAIRS)))
def test_inplace_add_keeps_the_object(make):
    target = traced(inplace_add)
    for outcome in (MISS, HIT):
        a, b = make()
        expected = inplace_add(*make())
        result = run_and_check(target, [outcome], 1, expected, a, b)
        if not isinstance(a, (int, float)):
            assert result is a


def add_to_item(a, b):
    a[1] += b
    return a


def store(a, b):
    a[0] = b
    return a, a[0]


def store_only(a, b):
    a[0] = b


def store_both(a, b):
    c = [a, a]
    c[0] = b
    return c


def store_to_temporary(a, b):
    c = [1.0, 2.0]
    c[1] = b
    return c[1] + a[0]


def add_returned(a, b):
    a += b
    return b


PROGRAMS = [
    add_to_item,
    store,
    store_only,
    store_both,
    store_to_temporary,
    add_returned,
]
STATES = [
    lambda: ([torch.zeros(1), torch.ones(1)], [torch.ones(1)]),
    lambda: (torch.zeros(2), torch.tensor(1.0)),
]


@pytest.mark.parametrize("make", STATES, ids=["list", "tensor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_effects_and_identities(program, make):
    if isinstance(make()[0], list) and program in (add_to_item, store_to_temporary):
        make = lambda: ([torch.zeros(1), torch.ones(1)], torch.ones(1))  # noqa: E731
    target = traced(program)
    for outcome in (MISS, HIT, HIT):
        a, b = make()
        other_a, other_b = make()
        expected = program(other_a, other_b)
        result = run_and_check(target, [outcome], 1, expected, a, b)
        assert agree((a, b), (other_a, other_b))
        names = {id(a): "a", id(b): "b"}
        others = {id(other_a): "a", id(other_b): "b"}
        parts = result if isinstance(result, (tuple, list)) else [result]
        expected_parts = expected if isinstance(expected, (tuple, list)) else [expected]
        assert [names.get(id(part)) for part in parts] == [
            others.get(id(part)) for part in expected_parts
        ]


def through(a, b, function):
    function(a, b)
    return a


def rebind(a, b):
    a = a + b
    return a


def extend(a, b):
    a.append(b) if isinstance(a, list) else a.add_(b)


CALLERS = [inplace_add, store_only, rebind, extend]


@pytest.mark.parametrize("make", STATES, ids=["list", "tensor"])
@pytest.mark.parametrize("function", CALLERS, ids=lambda f: f.__name__)
def test_through_a_callee(function, make):
    target = traced(through)
    for outcome in (MISS, HIT):
        a, b = make()
        expected = through(*make(), function)
        assert run_and_check(target, [outcome], 1, expected, a, b, function) is a
