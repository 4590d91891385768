"""Tuples as keys and elements: where they lie follows from their values.

On a hit a tuple may have another value than in the recorded run, be it an argument or
one that the program has made of a lifted number.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.frontend import trace

X = torch.ones(2)
MADE = """
{(5, 1): 3, (7, 1): 4}.get(key)
{((5, 1), 2): 3, ((7, 1), 2): 4}.get((key, 2))
key in {(5, 1): 3}
{(5, 1): 3}.setdefault(key, 9)
{(5, 1): 3, (7, 1): 4}.pop(key, None)
{(5, 1): 5, (7, 1): 7}.get(key, 0) * 2
collections.defaultdict(int, {(5, 1): 3})[key]
collections.OrderedDict([(key, 1), ((7, 1), 2)]).get((5, 1))
len({key: 1, (7, 1): 2})
len({key, (7, 1)})
len({(7, 1), *[key]})
len({(5, 1)} | {key})
len({k: 1 for k in (key, (7, 1))})
len({k for k in (key, (7, 1))})
len({k for k in [(key, 1), ((7, 1), 1)]})
len(dict([(key, 1), ((7, 1), 2)]))
len(dict(zip([key, (7, 1)], (1, 2))))
len(dict((k, 1) for k in (key, (7, 1))))
len(dict.fromkeys([key, (7, 1)]))
len(dict.fromkeys(iter([key, (7, 1)])))
len(set([key, (7, 1)]))
len(frozenset([key, (7, 1)]))
len(collections.Counter([key, (7, 1)]))
filled({(7, 1)}, "add", key)
filled({(7, 1), (5, 1)}, "discard", key)
filled({(7, 1)}, "update", [key])
filled({(7, 1)}, "update", iter([key, (7, 1)]))
filled({(7, 1): 1}, "update", {key: 1})
filled({(7, 1): 1}, "update", [(key, 2)])
filled({(7, 1): 1}, "update", zip([key], [2]))
filled({(7, 1): 1}, "__setitem__", key, 2)
entered({(7, 1): 1}, key)
""".strip().splitlines()
VALUES = (5, 7, 6, 5, 8, 7, 9, 5, 10, 7)


def filled(container: Any, method: str, *args: Any) -> int:
    getattr(container, method)(*args)
    return len(container)


def entered(container: Any, key: Any) -> int:
    container[key] = 2
    return len(container)


def compiled(key: str, text: str) -> Callable[..., Any]:
    """Return a program that uses a key made of an argument `n`."""
    names = {"collections": collections, "filled": filled, "entered": entered}
    source = f"def program(x, n):\n    key = {key}\n    return x * 2, {text}\n"
    exec(source, names)
    program: Callable[..., Any] = names["program"]  # type: ignore[assignment]
    return program


@pytest.mark.parametrize("text", MADE)
def test_a_tuple_from_outside(text: str) -> None:
    program = compiled("n", text)
    traced = trace(program, backend="eager")
    for n in VALUES:
        key = tuple([n, 1])
        mine, theirs = traced(X, key), program(X, key)
        assert mine[1] == theirs[1], traced.explain()


@pytest.mark.sample(22)
@pytest.mark.parametrize("text", MADE)
@pytest.mark.parametrize("dynamic", ["auto", {"n": True}])
def test_a_tuple_of_a_lifted_number(text: str, dynamic: Any) -> None:
    program = compiled("(n, 1)", text)
    traced = trace(program, backend="eager", dynamic=dynamic)
    for n in VALUES:
        mine, theirs = traced(X, n), program(X, n)
        assert mine[1] == theirs[1], traced.explain()


def test_a_tuple_of_lifted_sizes() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        cache = {(4, 3): 2, (5, 3): 7}
        return x * cache.get(tuple(x.shape), 1)

    traced = trace(program, backend="eager")
    for rows in (2, 3, 6, 4, 7, 5, 4, 8):
        x = torch.ones(rows, 3)
        assert torch.equal(traced(x), program(x))


def test_objects_in_a_tuple_are_told_apart() -> None:
    class Holder:
        pass

    def program(x: torch.Tensor, key: Any, other: Any) -> Any:
        return x * 2, {(other, 1): 3}.get((key, 1)), {(other, 1): 3}.get(key)

    traced = trace(program, backend="eager")
    first, second = Holder(), Holder()
    for key, other in ((first, second), (first, first), (second, first)):
        assert traced(X, key, other)[1:] == program(X, key, other)[1:]
        pair = (key, 1)
        assert traced(X, pair, other)[1:] == program(X, pair, other)[1:]


HASHED_USES = {
    "set": lambda table, key: table.__setitem__("b", 1.0),
    "read": lambda table, key: table["a"],
    "loop": lambda table, key: sum(table.values()),
    "delete": lambda table, key: (table.__setitem__("b", 1), table.pop("b"))[1],
    "update": lambda table, key: table.update(b=2.0),
    "clear": lambda table, key: table.clear(),
    "in": lambda table, key: key in table,
    "get": lambda table, key: table.get(key, 5.0),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
@pytest.mark.parametrize("use", HASHED_USES)
def test_hashes_and_comparisons_run_as_often_as_in_eager(use, kind, check):
    """The hash of a key changes, so that nobody finds it any more."""

    def calls(fast):
        log = []

        class Key:
            number = 1

            def __hash__(self):
                log.append("hash")
                return Key.number

            def __eq__(self, other):
                log.append("equal")
                return self is other

        table, key = kind(), Key()
        table[key] = 1.0
        table["a"] = 2.0

        def program(x):
            found = HASHED_USES[use](table, key)
            return x * (found if isinstance(found, float) else 3.0)

        function = trace(program, backend="eager", check=check) if fast else program
        seen = []
        for number in range(6):
            Key.number = 1 + number % 2
            try:
                result = function(torch.ones(1)).item()
            except KeyError:
                result = "lost"
            seen.append((result, log if check else list(log)))
        return [result for result, _ in seen] if check else seen

    assert calls(fast=True) == calls(fast=False)


SET_USES = {
    "add": lambda members, key: members.add(5),
    "add again": lambda members, key: members.add(key),
    "in": lambda members, key: key in members,
    "discard": lambda members, key: members.discard("b"),
    "update": lambda members, key: members.update([4, 5]),
    "clear": lambda members, key: members.clear(),
}


@pytest.mark.parametrize("use", SET_USES)
def test_members_of_sets_are_compared_as_often_as_in_eager(use):
    def calls(fast):
        log = []

        class Key:
            number = 1

            def __hash__(self):
                log.append("hash")
                return Key.number

            def __eq__(self, other):
                log.append("equal")
                return self is other

        key = Key()
        members = {key, "a"}

        def program(x):
            SET_USES[use](members, key)
            return x * len(members) + len(log)

        function = trace(program, backend="eager") if fast else program
        seen = []
        for number in range(6):
            Key.number = 1 + number % 2
            seen.append((function(torch.ones(1)).item(), len(log)))
        return seen

    assert calls(fast=True) == calls(fast=False)


ORDERS: dict[str, Callable[..., Any]] = {
    "for": lambda x, y, z: [t * 2 for t in {x, y, z}],
    "list": lambda x, y, z: list({x, y, z}),
    "display": lambda x, y, z: [*{x, y}, z],
    "tuples": lambda x, y, z: [t for t, _ in {(x, 1), (y, 1), (z, 1)}],
    "frozenset": lambda x, y, z: tuple(frozenset([x, y, z])),
    "pop": lambda x, y, z: {x, y, z}.pop() * 2,
    "keys": lambda x, y, z: list(dict.fromkeys({x, y, z})),
    "new": lambda x, y, z: [t + 1 for t in {x, y, z, x}],
    "number": lambda x, y, z: (x * len({x, y, z}), x in {y, z}),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_a_set_of_tensors_is_that_of_their_addresses(name: str) -> None:
    program = ORDERS[name]
    traced = trace(program, backend="eager")
    tensors = [torch.full((2,), float(number)) for number in range(6)]
    for chosen in itertools.permutations(tensors[:3]):
        for some in (chosen, (*chosen[:1], *tensors[3:5])):
            mine, theirs = traced(*some), program(*some)
            for left, right in zip(list(mine), list(theirs), strict=True):
                same = left == right
                assert same if isinstance(same, bool) else same.all(), traced.explain()
    assert name != "number" or traced.stats()["hits"] > 5


def test_the_address_of_a_new_tensor() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y.data_ptr(), x.data_ptr()

    traced = trace(program, backend="eager")
    for _ in range(6):
        x = torch.ones(3)
        y, new, given = traced(x)
        assert (y.data_ptr(), x.data_ptr()) == (new, given)
