"""Sizes that go through generators, `map` and reductions: one record for all."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import pytest
import torch
from torch.utils import _pytree as pytree

from magweld.frontend.traced import trace

SHAPES = [(4, 16), (5, 16), (6, 16), (7, 8), (9, 9), (8, 7), (16, 4), (9, 5)]


def halves(sizes):
    for size in sizes:
        yield size // 2


def delegated(sizes):
    yield from halves(sizes)
    yield from (1, 2)


def filled(x):
    seen = []

    def items():
        for size in x.shape:
            seen.append(size)
            yield size + len(seen)

    return tuple(items()), seen


def first_only(x):
    made = (size * 2 for size in x.shape)
    return next(made), list(made)


def stopped(x):
    made, found = (size * 3 for size in x.shape), []
    for size in made:
        found.append(size)
        break
    return found, sum(made)


def swapped(x):
    a, b = (size for size in x.shape[::-1])
    return x.reshape(a, b), a - b


def broken_off(x):
    try:
        return tuple(12 // (size - 5) for size in x.shape)
    except ZeroDivisionError:
        return x.shape[0]


def of_pairs(x):
    return [(a, b) for a, b in map(lambda a, b: (a + 1, b), x.shape, x.shape[::-1])]


def used(x):
    found = []
    return any(found.append(size) or size > 6 for size in x.shape), found


def twice(x):
    numbers = map(int, x.shape)
    return list(zip(numbers, numbers, strict=True))


def sent(x):
    def items():
        given = yield x.shape[0]
        yield given + x.shape[1]

    made = items()
    return next(made), made.send(x.shape[1])


def sorted_by(x):
    return sorted(x.shape, reverse=True), sorted(x.shape, key=lambda size: -size)


def with_keywords(x):
    made = [sorted((size for size in x.shape), reverse=True)]
    made.append(max((size for size in x.shape if size > 6), default=3))
    return made, sum((size for size in x.shape), start=2)


def changed(x):
    sizes, others = sorted(x.shape), sorted(x.shape)
    sizes.append(1)
    others[0] = 2
    return x * sizes[0], x * others[1], sizes, others


def appended(x):
    sizes = [1]
    sizes.extend(size + len(sizes) for size in x.shape)
    sizes += (size - 1 for size in x.shape)
    return sizes


# What one record does for all sizes.
FOLLOWED = {
    "tuple": lambda x: tuple(size // 2 for size in x.shape),
    "list": lambda x: list(size // 2 + i for i, size in enumerate(x.shape)),
    "function": lambda x: list(halves(x.shape)),
    "display": lambda x: [0, *(size + 1 for size in x.shape), *map(abs, x.shape)],
    "view": lambda x: x.view(tuple(size for size in x.shape)).sum(),
    "zeros": lambda x: torch.zeros(list(map(int, x.shape))),
    "sum": lambda x: x * sum(size for size in x.shape),
    "floats": lambda x: sum(size / 2 for size in x.shape),
    "product": lambda x: x.view(math.prod(size for size in x.shape)),
    "numel": lambda x: x.reshape(math.prod(x.shape)),
    "largest": lambda x: (max(s for s in x.shape), min(s for s in x.shape)),
    "loop": lambda x: [x * size for size in (other - 1 for other in x.shape)],
    "items": lambda x: sum(v for _, v in {"a": x.shape[0], "b": 2}.items()),
    "pairs": lambda x: tuple(
        a - b for a, b in zip(x.shape, x.shape[::-1], strict=True)
    ),
    "entries": lambda x: {name: size for name, size in zip("ab", x.shape, strict=True)},
    "compared": lambda x: x + (tuple(size for size in x.shape) == tuple(x.size())),
    "mapped": lambda x: list(map(lambda size: size // 2, x.shape)),
    "mapped sum": lambda x: sum(map(lambda size: size + 1, x.shape)),
    "mapped loop": lambda x: [x * size for size in map(lambda s: s + 1, x.shape)],
    "unpacked": lambda x: operator.sub(*[size for size in map(int, x.shape)]),
    "two": lambda x: list(map(operator.sub, x.shape, x.shape[::-1])),
    "reversed": lambda x: x.new_zeros(list(reversed(x.shape))),
    "sorted": lambda x: (sorted(x.shape), x * sorted(x.shape)[0]),
    "spread": lambda x: x.new_zeros(*(size + 1 for size in x.shape)),
    "in a function": lambda x: torch.ones(*(size for size in x.shape)).sum(),
    "quotients": lambda x: [divmod(size, 3) for size in x.shape],
    "of tensors": lambda x: torch.cat(tuple(y * y.shape[0] for y in (x, x))),
    "swapped": swapped,
}
# What follows from sizes in some other way; it may take a record for each of them.
OTHERS = [
    *(filled, first_only, stopped, broken_off, of_pairs, used, twice, sent, sorted_by),
    *(appended, with_keywords, changed),
    lambda x: list(delegated(x.shape)),
    lambda x: [*zip((s for s in x.shape), (-s for s in x.shape), strict=True)],
    lambda x: any(size > 8 for size in x.shape),
    lambda x: all(map(lambda size: size > 4, x.shape)),
    lambda x: functools.reduce(operator.mul, (size for size in x.shape)),
    lambda x: max((size for size in x.shape), key=lambda size: -size),
    lambda x: sum((size for size in x.shape), 3),
    lambda x: dict((str(i), size) for i, size in enumerate(x.shape)),
    lambda x: list(itertools.chain((size for size in x.shape), map(int, x.shape))),
    lambda x: list(filter(None, (size % 2 for size in x.shape))),
    lambda x: x.new_zeros(*(size for size in x.shape)),
    lambda x: torch.zeros(*map(int, x.shape)),
    lambda x: torch.full(*((s, 2) for s in x.shape[:1]), fill_value=x.shape[0]),
    lambda x: (lambda a, b: x.new_zeros(b, a))(*(size for size in x.shape)),
    lambda x: x.new_full(*((size,) for size in x.shape[:1]), x.shape[1]),
    lambda x: [divmod(size, 2.5) for size in x.shape],
    lambda x: divmod(*x.shape),
    lambda x: "x".join(str(size) for size in x.shape),
    lambda x: list(map(lambda pair: pair[0], zip(x.shape, x.shape, strict=True))),
    lambda x: {size // 4 for size in x.shape},
    lambda x: list(map(float, x.shape)) + list(map(max, x.shape, [6, 6])),
]


def agree(program, shapes):
    fast = trace(program, backend="eager")
    for height, width in shapes:
        x = torch.arange(height * width).reshape(height, width) * 0.5
        given, form = pytree.tree_flatten(fast(x))
        expected, expected_form = pytree.tree_flatten(program(x))
        assert form == expected_form
        for left, right in zip(given, expected, strict=True):
            assert type(left) is type(right)
            tensors = isinstance(left, torch.Tensor)
            assert torch.equal(left, right) if tensors else left == right
    return fast


@pytest.mark.parametrize("name", FOLLOWED)
def test_one_record_is_for_all_sizes(name):
    # The first sizes tell which change; torch assumes that 0 and 1 are no others.
    fast = agree(FOLLOWED[name], [(n, 25) for n in range(4, 9)])
    assert fast.stats()["records"] <= 3, fast.explain()
    agree(FOLLOWED[name], SHAPES)


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_other_ways_of_sizes_are_those_of_the_call(number):
    for shapes in (SHAPES, [(n, 6) for n in (4, 5, 6, 7, 8, 6, 9, 5)]):
        assert agree(OTHERS[number], shapes).stats()["records"] > 0
