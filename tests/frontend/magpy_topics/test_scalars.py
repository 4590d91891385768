"""Scalars: specialised by value, lifted on request, or computed from tensors."""

from __future__ import annotations

import operator

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced


def add_one(n):
    return n + 1


def add_two(n):
    return n + 2


def test_ints_are_specialised_and_functions_share_no_records():
    first, second = traced(add_one), traced(add_two)
    run_and_check(first, [MISS, HIT], 1, 2, 1)
    run_and_check(first, [MISS, HIT], 2, 3, 2)
    run_and_check(second, [MISS, HIT], 1, 3, 1)
    run_and_check(first, [HIT], 2, 2, 1)


def test_floats_are_specialised():
    target = traced(add_one)
    run_and_check(target, [MISS, HIT], 1, 1.1, 0.1)
    run_and_check(target, [MISS, HIT], 2, 1.2, 0.2)
    run_and_check(target, [MISS], 3, 2, 1)
    run_and_check(target, [MISS], 4, 2.0, 1.0)
    run_and_check(target, [HIT], 4, 2, 1)


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
]
PAIRS = [(a, b) for a in (1, 2.5, True) for b in (2, 0.5, True)]


@pytest.mark.parametrize("symbol", OPERATORS, ids=lambda f: f.__name__)
def test_binary_operators_on_all_pairs_of_types(symbol):
    target = traced(lambda a, b: symbol(a, b))
    for number, (a, b) in enumerate(PAIRS):
        run_and_check(target, [MISS], number + 1, symbol(a, b), a, b)
    for a, b in PAIRS:
        run_and_check(target, [HIT], len(PAIRS), symbol(a, b), a, b)


def scaled(x, a, b, c):
    return x * a + b, c + 1


def called(x, a, b, c):
    return scaled(x, a, b, c)[0] * 2.0


@pytest.mark.parametrize("program", [scaled, called])
def test_marked_scalars_are_lifted_and_others_are_not(program):
    target = traced(program, dynamic={"args[1]": True, "args[2]": True})
    x = torch.ones(2)
    run_and_check(target, [MISS], 1, program(x, 2, 0.1, 3), x, 2, 0.1, 3)
    run_and_check(target, [HIT], 1, program(x, 5, 16777217.0, 3), x, 5, 16777217.0, 3)
    run_and_check(target, [MISS], 2, program(x, 5, 0.1, 4), x, 5, 0.1, 4)
    run_and_check(target, [HIT], 2, program(x, 7, 0.2, 4), x, 7, 0.2, 4)


def from_tensor(x):
    return float(x.sum()) + 1.0


def test_scalar_from_a_tensor():
    target = traced(from_tensor, dynamic={"__float__(args[0])": True})
    for outcome, value in ((MISS, 1.0), (HIT, 2.0), (HIT, 0.5)):
        x = torch.full((2,), value)
        run_and_check(target, [outcome], 1, from_tensor(x), x)
    # Without being told, a guard has to fail first.
    target = traced(from_tensor, dynamic="auto")
    for number, value in enumerate((1.0, 2.0, 0.5, 3.0)):
        x = torch.full((2,), value)
        outcome = MISS if number < 2 else HIT
        run_and_check(target, [outcome], min(number + 1, 2), from_tensor(x), x)


def product(n):
    import itertools

    return list(itertools.product(range(n), repeat=2))


def test_import_and_itertools_inside():
    target = traced(product)
    run_and_check(target, [MISS, HIT], 1, [(0, 0), (0, 1), (1, 0), (1, 1)], 2)
    run_and_check(target, [MISS, HIT], 2, [(0, 0)], 1)


def make_long_sum(terms):
    lines = [f"    y = y + x * {float(k)}" for k in range(terms)]
    source = "\n".join(["def program(x):", "    y = x", *lines, "    return y"])
    namespace = {}
    exec(source, namespace)
    return namespace["program"]


def test_more_constants_than_one_byte_counts():
    program = make_long_sum(270)
    x = torch.ones(2)
    run_and_check(traced(program), [MISS, HIT], 1, program(x), x)
