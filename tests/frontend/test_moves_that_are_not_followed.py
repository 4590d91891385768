"""Native code that places numbers in a way that is not followed needs their values."""

from __future__ import annotations

import collections
import functools
import operator
import types

import pytest
import torch

from magweld.frontend.traced import trace

X = torch.tensor([1.0, -2.0, 3.0])


def counts(x, k, c):
    more = (k, 3)
    more *= k % 4
    return x * k, [k, 1] * (k % 3), k * (3, k), [k] * (k > 3), c * (k % 2), more


def counts_by_name(x, k, c):
    return x * k, operator.mul([k], k), operator.imul([k, 3], k)


def index_of_tensor(x, k, c):
    one = (x * 0).argmax() + 1
    return x * c[one], operator.getitem(c, one), c[0]


def index_of_object(x, k, c):
    class One:
        def __index__(self):
            return 1

    return x * c[One()], c[0]


def merged(x, k, c):
    other = collections.OrderedDict(a=3)
    first = {"a": k, "b": k, **other}
    second = {"a": k, "b": k, **types.MappingProxyType(other)}
    return x * first["a"] + second["a"], first, second


def iterator_in_two_places(x, k, c):
    numbers = [k, k, 3, 3]
    one, two, three = (
        iter(numbers),
        iter(numbers),
        iter(dict(enumerate(numbers)).values()),
    )
    deep = [*zip(one, enumerate(one), strict=False)]
    flat = list(zip(two, two, strict=True))
    rows = dict(enumerate(zip(zip(three, [k, 3], strict=False), three, strict=False)))
    return x * k, deep, flat, rows


class Reduced:
    """An iterator whose `__reduce__` nobody may call."""

    def __init__(self, numbers, log):
        self.numbers = numbers
        self.log = log

    def __iter__(self):
        return self

    def __next__(self):
        if not self.numbers:
            raise StopIteration
        return self.numbers.pop(0)

    def __reduce__(self):
        self.log.append("reduced")
        return list, ()


def iterator_of_a_class(x, k, c):
    log = []
    pairs = list(zip(Reduced([k, 3], log), [3, k], strict=True))
    for one, two in zip(Reduced([k, 3], log), enumerate(c), strict=True):
        x = x * one + two[1]
    return x, pairs, log


class Walked:
    """Its elements are those of a list, to which `begin` may write before."""

    def __init__(self, numbers, begin):
        self.numbers = numbers
        self.begin = begin

    def __iter__(self):
        self.begin()
        return iter(self.numbers)

    def __index__(self):
        self.begin()
        return 1


def written_by_callbacks(x, k, c):
    lists = [[1, 3, 4] for _ in range(5)]
    lists[4].extend((2, 2))
    table = {"a": 1, "b": 3}

    def writes(numbers, value):
        numbers[1] = k
        numbers.insert(2, numbers.pop())
        table["b"] = k
        return value

    made = [
        [*map(lambda v: writes(lists[0], v), lists[0])],
        max(lists[1], key=lambda v: writes(lists[1], v)),
        functools.reduce(lambda a, v: writes(lists[2], a + v), lists[2]),
        list(filter(lambda v: writes(lists[3], True), lists[3])),
        list(zip((writes(lists[4], v) for v in "abc"), lists[4], strict=False)),
        [*map(lambda v: writes(lists[0], v), table.values())],
    ]
    return x * k, made, lists, table


def overwritten_in_a_list(x, k, c):
    one = [1, k, 3]

    def writes(value):
        one[1] = 3
        return value

    return x * k, list(map(writes, one)), one


def overwritten_in_a_dict(x, k, c):
    table = {"a": 3, "b": k}

    def writes(value):
        table["b"] = 3
        return value

    return x * k, [*map(writes, table.values())], table


def elements_by_method(x, k, c):
    walked = Walked([1, k, 4], lambda: None)
    a, b, _ = walked
    return x * k, a, b, [*walked], list(walked)


def elements_that_a_method_writes(x, k, c):
    numbers = [1, 3, 4]

    def begin():
        numbers[1] = k

    return x * k, [*Walked(numbers, begin)]


def element_by_method(x, k, c):
    numbers = [1, 3, 4]
    return x * k, numbers[Walked(numbers, lambda: numbers.insert(1, k))]


PROGRAMS = [
    *(counts, counts_by_name, index_of_tensor, index_of_object, merged),
    *(iterator_in_two_places, iterator_of_a_class, written_by_callbacks),
    *(overwritten_in_a_list, overwritten_in_a_dict, elements_by_method),
    *(elements_that_a_method_writes, element_by_method),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize(
    "numbers", [[7, 8, 3, 5, 1, 4, 0, 2], [2, 5, 4, 7, 1, 3, 6, 3]]
)
def test_numbers_lie_where_the_program_puts_them(program, numbers):
    # The third number is lifted; it is equal to others in some calls.
    fast = trace(program, backend="eager")
    for k in numbers:
        (x, *mine), (expected, *theirs) = fast(X, k, [k, 3]), program(X, k, [k, 3])
        assert torch.equal(x, expected), (k, fast.explain())
        assert repr(mine) == repr(theirs), (k, fast.explain())
    assert not fast.stats()["breaks"], fast.explain()
