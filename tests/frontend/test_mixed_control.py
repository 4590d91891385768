"""Branches on tensors beside lifted numbers and sizes: one record, equal to eager."""

from __future__ import annotations

import copy

import pytest
import torch

from magweld.frontend.traced import trace
from magweld.graphs.control_operators import IfOperator, WhileOperator, all_nodes

# What a call without lifting, a failed predicate and lifting leave; more is a record
# for each value.
MAX_RECORDS = 5


def deep(x):
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def predicate(x, n):
    return x * 2 if x.sum() > 0 else x - 1


def compared_with_number(x, n):
    if x.sum() > n:
        return x * n
    return x - n


def sizes_in_both(x, n):
    h = deep(x)
    if h.sum() > 0:
        y = h / h.shape[0]
    else:
        y = h.reshape(-1).view(x.shape[0], -1) - x.shape[0]
    return y + 1, y.shape[0]


def size_of_what_is_not_used(x, n):
    h = deep(x)
    y = h
    if h.sum() > 0:
        y = h * h[1:].shape[0]
    return y * y.shape[1]


def nested(x, n):
    h = deep(x)
    if h.sum() > 0:
        if h.max() > 2:
            h = h * n
        else:
            part = h[:, 1:]
            h = h + part.shape[0] * part.shape[1]
    return h


def callee(h, n):
    if h.mean() > 0:
        return h.relu() + n
    return h.sigmoid() * h.shape[0]


def in_callee(x, n):
    return callee(deep(x), n), x.shape[0] * n


def lists(x, n):
    h = deep(x)
    parts = [h, n] if h.sum() > 0 else [-h, n]
    return parts[0] * parts[1]


def numbers_of_the_other_way(x, n):
    h = deep(x)
    if h.sum() > 0:
        half = n // 2
        h = h + half
    return h * (n + 1)


def halved(x, n):
    while (x.abs() > 0.1).any():
        x = x * 0.5
    return x + n


def loop_with_size(x, n):
    total = x.shape[0] + n
    while (x.abs() > 0.1).any():
        x = x / total
    return x


def branch_in_loop(x, n):
    while (x.abs() > 0.1).any():
        if x.sum() > 0:
            x = x * 0.5 - n * 0.001
        else:
            x = x * 0.25
    return x


PROGRAMS = (
    predicate,
    compared_with_number,
    sizes_in_both,
    size_of_what_is_not_used,
    nested,
    in_callee,
    lists,
    numbers_of_the_other_way,
    halved,
    loop_with_size,
    branch_in_loop,
)


def calls(sizes, numbers):
    """Yield arguments with these sizes and numbers in turn, of both signs."""
    torch.manual_seed(0)
    for k in range(16):
        shift = (-1) ** k * 0.4 * (k % 5)
        yield torch.randn(sizes[k % len(sizes)], 6) + shift, numbers[k % len(numbers)]


def same(left, right):
    """Whether two results agree."""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        alike = left.shape == right.shape and left.stride() == right.stride()
        return alike and torch.equal(left, right)
    return type(left) is type(right) and left == right


def check(program, sizes, numbers):
    """Call the traced form and compare each call; return the form."""
    traced = trace(program, backend="eager", check=True)
    with torch.no_grad():
        for args in calls(sizes, numbers):
            result = traced(*copy.deepcopy(args))
            text = f"{args[0].shape}, {args[1]}\n{traced.explain()}"
            assert same(result, program(*args)), text
    return traced


@pytest.mark.parametrize("program", PROGRAMS)
def test_sizes(program):
    traced = check(program, (2, 3, 4, 5, 7, 11, 6), (3,))
    assert len(traced.records) <= MAX_RECORDS, traced.explain(recompiles=True)
    assert traced.stats()["hits"] >= 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_numbers(program):
    traced = check(program, (4,), (2, 3, 4, 5, 7, 11, 6))
    assert len(traced.records) <= MAX_RECORDS, traced.explain(recompiles=True)
    assert traced.stats()["hits"] >= 10


def test_both_change():
    traced = check(nested, (2, 3, 4, 5, 7), (2, 3, 4, 5, 7, 11, 6))
    kinds = {type(n.target) for n in all_nodes(traced.records[0].graph)}
    assert IfOperator in kinds
    traced = check(branch_in_loop, (2, 3, 4, 5, 7), (2, 3, 4, 5, 7, 11, 6))
    kinds = {type(n.target) for n in all_nodes(traced.records[0].graph)}
    assert {IfOperator, WhileOperator} <= kinds


def test_ways_whose_shapes_agree_by_chance():
    def program(x, n):
        h = deep(x)
        y = h[:4] if h.sum() > 0 else h[:n]
        return y + 1

    check(program, (12,), (4, 3, 4, 5, 4, 6))


def test_numbers_that_agree_by_chance():
    def program(x, n):
        h = deep(x)
        if h.sum() > 0:
            k = n
        else:
            k = 4
            h = h - 1
        return h * k

    traced = trace(program, backend="eager", dynamic={"n": True})
    x = torch.ones(3)
    for n in (4, 4, 5, 6, 4):
        for sign in (1, -1):
            assert torch.equal(traced(x * sign, n), program(x * sign, n)), n


def test_list_elements_that_agree_by_chance():
    def program(x, n):
        h = deep(x)
        pair = [h, n] if h.sum() > 0 else [-h, 4]
        return pair[0] * pair[1]

    traced = trace(program, backend="eager", dynamic={"n": True})
    x = torch.ones(3)
    for n in (4, 4, 5, 6, 4):
        for sign in (1, -1):
            assert torch.equal(traced(x * sign, n), program(x * sign, n)), n


def test_a_number_that_a_loop_changes_to_itself():
    def program(x, n):
        k = 4
        while (x.abs() > 0.1).any():
            x = x / k
            k = max(k, n)
        return x * k

    traced = trace(program, backend="eager", dynamic={"n": True})
    for n in (3, 2, 4, 5, 6, 3):
        for scale in (1.0, 50.0, 0.01):
            x = torch.ones(3) * scale
            assert torch.equal(traced(x, n), program(x, n)), (n, scale)


def test_a_list_that_a_way_on_trial_would_write():
    def program(x, n):
        held = [n]
        h = deep(x)
        try:
            if h.sum() > 0:
                held[0] = 7
        except ValueError:
            pass
        return h * held[0]

    traced = trace(program, backend="eager", dynamic={"n": True})
    x = torch.ones(3)
    for n in (4, 4, 5, 6, 4):
        for sign in (1, -1):
            assert torch.equal(traced(x * sign, n), program(x * sign, n)), n


def test_an_attribute_that_an_iteration_on_trial_would_write():
    class Box:
        v = 2

    def program(x, box):
        while (x > 1).any():
            x = x * 0.4
            box.v += 1
        return x

    traced = trace(program, backend="eager", dynamic={"box.v": True})
    mine, theirs = Box(), Box()
    mine.v = theirs.v = 2
    for top in (1.5, 3.9, 1.7, 3.9, 1.5, 3.9, 1.5):
        x = torch.full((3,), top)
        assert torch.equal(traced(x, mine), program(x, theirs))
        assert mine.v == theirs.v
    assert traced.stats()["hits"] >= 3


def test_numbers_in_compiled_pieces():
    def program(x, n):
        h = deep(x)
        if h.sum() > 0:
            h = (h * n + 1).relu() - n
        else:
            h = (h + n).sigmoid() * n
        return h.exp() + 1

    traced = trace(program)
    x = torch.randn(4, 6)
    with torch.no_grad():
        for n in (2, 3, 4, 5, 5, 5, 5):
            for sign in (1, -1, 1):
                expected = program(x.abs() * sign, n)
                torch.testing.assert_close(traced(x.abs() * sign, n), expected)
    assert traced.records[0].compiled.compiled >= 1


def called_while(x, n):
    while bool((x.abs() > 0.1).any()):
        x = x / (n + 1)
    return x


def called_if(x, n):
    h = deep(x)
    if bool(h.sum() > 0) and not bool(h.max() > 3):
        h = h * n
    return h


def called_conditional(x, n):
    h = deep(x)
    if bool(h.sum() > 0) if n > 3 else bool(h.sum() < 0):
        h = h * n
    return h


@pytest.mark.parametrize("program", [called_while, called_if])
def test_calls_of_bool(program):
    traced = check(program, (2, 3, 4, 5, 7), (2, 3, 4, 5, 7, 11, 6))
    assert len(traced.records) <= MAX_RECORDS, traced.explain(recompiles=True)
    kinds = {type(n.target) for n in all_nodes(traced.records[0].graph)}
    assert kinds & {IfOperator, WhileOperator}


def test_calls_of_bool_that_a_choice_makes():
    check(called_conditional, (4,), (2, 3, 4, 5, 7, 11, 6))


def test_a_test_that_is_another_function_later():
    def program(x):
        test = bool
        while test((x.abs() > 0.1).any()):
            x = x * 0.5
            test = torch.is_tensor if x.sum() > 100 else bool
        return x

    traced = trace(program, backend="eager", check=True)
    for scale in (1.0, 3.0, 0.01, 2.0, 9.0):
        x = torch.full((3,), scale)
        assert torch.equal(traced(x), program(x))


def test_loops_that_stay_written_out_are_explained():
    def program(x, n):
        for _ in range(n):
            if x.sum() > 0:
                x = x - 1
            else:
                x = x + 2
        return x

    traced = trace(program, backend="eager")
    for n in (2, 3, 4, 5, 6):
        for sign in (1, -1):
            x = torch.ones(3) * sign
            assert torch.equal(traced(x, n), program(x, n))
    line = program.__code__.co_firstlineno + 1
    text = traced.explain()
    assert f"loop-written-out at {__file__}:{line}" in text, text


@pytest.mark.parametrize("first", [0, 1])
def test_a_branch_that_gives_what_a_loop_has_left(first: int) -> None:
    def program(x, n):
        h = x + 0
        m = h + 1.0
        for i in range(n):
            h = h + i * 0.01
        return h if (m.sum() > 0 and m.mean() < 1) else m

    traced = trace(program, backend="eager", dynamic={"x": (0,), "n": True})
    hits = 0
    for count, size in enumerate((4, 4, 3, 5, 5, 4, 3, 4), first):
        x = torch.randn(size, 6) * 0.1 + (0.5 if count % 2 else -0.5)
        assert torch.equal(traced(x, count % 3 + 2), program(x, count % 3 + 2))
        hits = traced.stats()["hits"]
    assert hits >= 5
