"""Special methods that native code asks a class for, given to it between two calls."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import operator

import pytest
import torch

from magweld.frontend import trace

X = torch.ones(2)


def ending(function, *args):
    """Return the result, or the type of what was raised."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def changed_between(base, use, changes):
    """Return the results before and after a change, in eager mode and traced."""
    found = []
    for traced in (False, True):
        cls = type("Cls", (base,), {})
        obj = cls()

        def program(x, obj=obj):
            result = None
            with contextlib.suppress(TypeError, LookupError, AttributeError):
                result = use(obj)
            return x * 2, repr(result)

        program = trace(program, backend="eager") if traced else program
        results = [ending(program, X) for _ in range(3)]
        for name, value in changes.items():
            setattr(cls, name, value)
        found.append([*results, *[ending(program, X) for _ in range(2)]])
    return found


def same(left, right):
    if type(left) is not tuple or type(right) is not tuple:
        return left is right
    return torch.equal(left[0], right[0]) and left[1] == right[1]


METHODS = {
    "callable": (callable, {"__call__": lambda self: 1}),
    "hash": (lambda obj: {obj: 1}[obj], {"__hash__": None}),
    "hash of a part": (lambda obj: len({(obj, 1)}), {"__hash__": None}),
    "slice": (lambda obj: [1, 2, 3][:obj], {"__index__": lambda self: 1}),
    "length": (len, {"__len__": lambda self: 3}),
    "truth": (bool, {"__len__": lambda self: 0}),
    "membership": (lambda obj: 1 in obj, {"__iter__": lambda self: iter([1])}),
    "comparison": (lambda obj: 3 < obj, {"__gt__": lambda self, other: True}),
    "index": (lambda obj: [1, 2][obj], {"__index__": lambda self: 1}),
    "rounding": (math.floor, {"__floor__": lambda self: 1}),
    "search": (lambda obj: [obj].index(2), {"__eq__": lambda self, other: True}),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_an_object_gets(name):
    expected, found = changed_between(object, *METHODS[name])
    assert not same(expected[0], expected[-1])
    assert all(map(same, expected, found)), (expected, found)


ITERATING = {
    "display": lambda obj: [*obj],
    "tuple display": lambda obj: (*obj,),
    "set display": lambda obj: {*obj},
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": lambda obj: list(collections.deque(obj)),
    "sum": sum,
    "max": lambda obj: max(obj, default=9),
    "sorted": sorted,
    "prod": math.prod,
    "fsum": math.fsum,
    "extend": lambda obj: operator.iadd([], obj),
    "union": lambda obj: set().union(obj),
    "counter": lambda obj: dict(collections.Counter(obj)),
    "map": lambda obj: list(map(str, obj)),
    "zip": lambda obj: list(zip(obj, obj, strict=True)),
    "chain": lambda obj: list(itertools.chain(obj, [5])),
    "reduce": lambda obj: functools.reduce(operator.add, obj, 0),
    "loop": lambda obj: [item for item in obj],
    "call": lambda obj: (lambda *items: items)(*obj),
}


@pytest.mark.parametrize("base", [list, tuple, set, dict, str, collections.deque])
@pytest.mark.parametrize("name", ITERATING)
def test_an_iterator_that_a_container_gets(base, name):
    iterator = {"__iter__": lambda self: iter([1, 2])}
    expected, found = changed_between(base, ITERATING[name], iterator)
    assert all(map(same, expected, found)), (expected, found)


MERGING = {
    "display": lambda obj: {**obj},
    "call": lambda obj: (lambda **more: more)(**obj),
    "dict": dict,
    "or": lambda obj: {} | obj,
    "update": lambda obj: operator.ior({}, obj),
}


@pytest.mark.parametrize("name", MERGING)
def test_a_mapping_that_a_dict_becomes(name):
    methods = {
        "keys": lambda self: ["a"],
        "__iter__": lambda self: iter(["a"]),
        "__getitem__": lambda self, key: 7,
    }
    expected, found = changed_between(dict, MERGING[name], methods)
    assert all(map(same, expected, found)), (expected, found)
