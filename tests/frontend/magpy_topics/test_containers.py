"""Lists, tuples, sets and dicts: with and without tensors, aliases, comprehensions."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced


def lists(a, b):
    return a * 3, [a, 9], a[:1], a + b, a[-1], 2 in a, [*a, *b]


def tuples(a, b):
    return a * 3, (a, 9), a[:1], a + b, a[-1], 2 in a, (*a, *b)


def sets(a, b):
    return a | b, a & b, a - b, a ^ b, 2 in a, len(a), a


def dicts(a, b):
    return {**a, **b}, a["k"], list(b), len(a), "k" in b, dict(a, z=1)


PLAIN = [
    (lists, ([1, 2], [3]), ([1, 4], [3])),
    (tuples, ((1, 2), (3,)), ((1, 4), (3,))),
    (sets, ({1, 2}, {2, 3}), ({1, 4}, {2, 3})),
    (dicts, ({"k": 1}, {"k": 2}), ({"k": 1}, {"j": 2})),
]


@pytest.mark.parametrize(("program", "first", "second"), PLAIN)
def test_without_tensors(program, first, second):
    target = traced(program)
    run_and_check(target, [MISS, HIT], 1, program(*first), *first)
    run_and_check(target, [MISS, HIT], 2, program(*second), *second)
    run_and_check(target, [HIT], 2, program(*first), *first)


def list_of(a, b):
    nested = [a, [b, a]]
    return nested, nested[1], [a + b, nested[0]]


def tuple_of(a, b):
    nested = (a, (b, a))
    return nested, nested[1], (a + b, nested[0])


def dict_of(a, b):
    nested = {"a": a, "n": {"b": b}}
    return nested, nested["n"], {"s": a + b, "a": nested["a"]}


def set_of(a, b):
    kept = {1, 2}
    return a + len(kept), kept, b


@pytest.mark.parametrize("program", [list_of, tuple_of, dict_of, set_of])
def test_with_tensors_and_aliases(program):
    target = traced(program)
    for outcome in (MISS, HIT):
        a, b = torch.rand(2), torch.rand(2)
        result = run_and_check(target, [outcome], 1, program(a, b), a, b)
        if program is set_of:
            continue
        key = "n" if program is dict_of else 1
        assert result[0][key] is result[1]
        assert result[0]["a" if program is dict_of else 0] is a
        assert result[2]["a" if program is dict_of else 1] is a


def container_of_tensors(values):
    first, *rest = values
    return [first + 1.0, *rest], values[0] is first, values


@pytest.mark.parametrize("kind", [list, tuple])
def test_containers_as_arguments(kind):
    target = traced(container_of_tensors)
    for outcome in (MISS, HIT):
        values = kind([torch.rand(2), torch.rand(2)])
        expected = container_of_tensors(values)
        result = run_and_check(target, [outcome], 1, expected, values)
        assert result[2] is values
        assert result[0][1] is values[1]
    longer = kind([torch.rand(2)] * 3)
    run_and_check(target, [MISS], 2, container_of_tensors(longer), longer)


def contains(a, b):
    return b in a


def test_list_contains():
    target = traced(contains)
    run_and_check(target, [MISS, HIT], 1, True, [1, 2], 2)
    run_and_check(target, [MISS, HIT], 2, False, [1, 3], 2)


def comprehensions(x, n):
    squares = [i * i for i in range(n)]
    pairs = [a + b * x for a, b in zip(squares, [x, x], strict=False)]
    return squares, [x + i for i in squares], pairs, {i: x for i in squares}


def test_comprehensions():
    target = traced(comprehensions)
    for outcome in (MISS, HIT):
        x = torch.rand(2)
        run_and_check(target, [outcome], 1, comprehensions(x, 2), x, 2)
    run_and_check(target, [MISS], 2, comprehensions(x, 1), x, 1)


def append_inside(x):
    values = []
    result = (values, x + 1.0)
    values.append(x)
    values.append(result[1])
    return result


def test_append_to_a_list_inside_of_a_returned_tuple():
    target = traced(append_inside)
    for outcome in (MISS, HIT):
        x = torch.rand(2)
        result = run_and_check(target, [outcome], 1, append_inside(x), x)
        assert result[0][0] is x
        assert result[0][1] is result[1]


def ordered(table):
    table["new"] = table["a"] + 1.0
    return OrderedDict(b=table["new"], a=table["a"]), table


def test_ordered_dict_in_and_out():
    target = traced(ordered)
    for outcome in (MISS, HIT):
        make = lambda: OrderedDict(a=torch.ones(2))  # noqa: E731
        table = make()
        result = run_and_check(target, [outcome], 1, ordered(make()), table)
        assert result[1] is table
        assert list(table) == ["a", "new"]


def keywords(*args, b, **kwargs):
    return args[0] + b, kwargs["c"]


def forward(*args, b, **kwargs):
    kwargs.update(c=kwargs["c"] * 2.0)
    return keywords(*args, b=b, **kwargs)


def test_keywords_are_forwarded():
    target = traced(forward)
    for outcome in (MISS, HIT):
        x, y = torch.rand(2), torch.rand(2)
        expected = forward(x, b=1.0, c=y)
        run_and_check(target, [outcome], 1, expected, x, b=1.0, c=y)


def returns_iterator(values):
    return enumerate(values, 3)


def test_a_returned_enumerate_object_is_made_again():
    target = traced(returns_iterator)
    for _ in range(3):
        values = [torch.rand(1), torch.rand(1)]
        result = target(values)
        assert type(result) is enumerate
        pairs = list(result)
        assert [index for index, _ in pairs] == [3, 4]
        assert all(
            item is value for (_, item), value in zip(pairs, values, strict=True)
        )
    assert target.stats()["hits"] == 2


class Pair(NamedTuple):
    """Two values."""

    left: Any
    right: Any


def named(x):
    pair = Pair(x, right=x + 1.0)
    return pair, pair._replace(left=pair.right), pair.left


def test_named_tuples():
    target = traced(named)
    for outcome in (MISS, HIT):
        x = torch.rand(2)
        result = run_and_check(target, [outcome], 1, named(x), x)
        assert type(result[0]) is Pair
        assert result[1].left is result[0].right
        assert result[2] is x
