"""Arithmetic on lifted numbers that raises for some of them, used or not."""

from __future__ import annotations

import math
import operator
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from magweld.frontend.expressions.bounds import (
    bounds_of,
    bounds_of_result,
    is_total,
)
from magweld.frontend.traced import trace

INF, NAN, HUGE = math.inf, math.nan, 10**400
PROGRAMS = [
    (lambda k: 1 / k, (3.0, 5.0, 2.0, 0.0)),
    (lambda k: 7 // k, (3, 5, 2, 0)),
    (lambda k: 7 % k, (3, 5, 2, 0)),
    (lambda k: 7 << k, (3, 5, 2, -1)),
    (lambda k: 2.0**k, (3.0, 5.0, 2.0, 1e5)),
    (lambda k: k // 1, (3, 5, 2, NAN)),
    (lambda k: int(k), (3.0, 5.0, 2.0, INF)),
    (lambda k: round(k), (3.0, 5.0, 2.0, NAN)),
    (lambda k: math.floor(k), (3.0, 5.0, 2.0, INF)),
    (lambda k: math.sqrt(k), (3.0, 5.0, 2.0, -1.0)),
    (lambda k: math.exp(k), (3.0, 5.0, 2.0, 1e5)),
    (lambda k: k * 1.5, (3, 5, 2, HUGE)),
    (lambda k: k / 2, (3, 5, 2, HUGE)),
    (lambda k: float(k), (3, 5, 2, HUGE)),
    (lambda k: math.prod((k, 2.0)), (3, 5, 2, HUGE)),
]


def outcome(function, *arguments):
    try:
        return repr(function(*arguments))
    except (ArithmeticError, ValueError) as error:
        return repr(error)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(("compute", "numbers"), PROGRAMS)
def test_what_may_raise_is_computed_by_a_hit(compute, numbers, used):
    def program(x, k):
        value = compute(k)
        return (x + 1, value) if used else x + 1

    traced = trace(program, backend="eager", dynamic={"k": True})
    x = torch.ones(1)
    for k in numbers:
        assert outcome(traced, x, k) == outcome(program, x, k)
    assert traced.stats()["hits"] >= 1


def test_a_quotient_of_the_numbers_of_a_loop_is_rolled_where_none_is_zero():
    def shifted(x, n, first):
        for step in range(n):
            x = x + 1.0 / (step + first)
        return x

    traced = trace(shifted, backend="eager", dynamic={"n": True})
    for n in (20, 24, 30):
        assert torch.equal(traced(torch.ones(2), n, 1), shifted(torch.ones(2), n, 1))
    assert traced.stats()["records"] == 1
    traced = trace(shifted, backend="eager", dynamic={"n": True})
    for n in (3, 4, 5, 9):
        arguments = (torch.ones(2), n, -6)
        assert outcome(traced, *arguments) == outcome(shifted, *arguments)


NUMBERS = st.one_of(
    st.integers(-5, 5), st.integers(), st.floats(), st.booleans(), st.just(HUGE)
)
FUNCTIONS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.mod),
    *(operator.floordiv, operator.rshift, operator.and_, operator.lt, operator.eq),
]


def small(value):
    """Return bounds of a number that may be others than this one."""
    known = bounds_of(value)
    return None if known is None else (known[0] - 2.0, known[1] + 3.0)


@given(st.sampled_from(FUNCTIONS), NUMBERS, NUMBERS)
def test_bounds_hold_and_total_functions_raise_nothing(function, left, right):
    for bounds in product(
        (None, bounds_of(left), small(left)), (None, bounds_of(right), small(right))
    ):
        if not is_total(function, (left, right), bounds):
            continue
        value = function(left, right)
        within = bounds_of_result(function, bounds)
        if within is not None and None not in bounds:
            assert within[0] <= value <= within[1]


@given(st.sampled_from([int, round, math.floor, abs, operator.neg, float]), NUMBERS)
def test_bounds_of_functions_of_one_number(function, value):
    for bounds in (None, bounds_of(value), small(value)):
        if is_total(function, (value,), (bounds,)):
            result = function(value)
            within = bounds_of_result(function, (bounds,))
            if within is not None:
                assert within[0] <= result <= within[1]
