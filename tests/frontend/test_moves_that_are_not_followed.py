"""Native code that places numbers in a way that is not followed needs their values."""

from __future__ import annotations

import collections
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


PROGRAMS = [
    *(counts, counts_by_name, index_of_tensor, index_of_object, merged),
    *(iterator_in_two_places, iterator_of_a_class),
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
