"""Addresses of tensors that are only compared are no values of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

Pair = tuple[Tensor, Tensor]
Program = Callable[[Tensor, Tensor], Any]


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    all_same = q.data_ptr() == k.data_ptr() == v.data_ptr()
    same = k.data_ptr() == v.data_ptr()
    if all_same:
        return q * 2
    return q + k if same else q + k * v


def one(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    return attend(h, h, h)


def views(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    return attend(h, h.view(-1), h.t())


def two(x: Tensor, y: Tensor) -> Tensor:
    h, g = x + 1, y * 2
    return attend(h, g, g)


def three(x: Tensor, y: Tensor) -> Tensor:
    return attend(x + 1, x * 2, x)


def places(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    first, second, third = h[1:], h[1:3], h[2:]
    begins = first.data_ptr()
    return h if begins == second.data_ptr() and begins != third.data_ptr() else h * 2


def a_variable(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    first, second = h.data_ptr(), y.data_ptr()
    differs = first != second
    return h if differs else h * 2


KNOWN: list[Program] = [one, views, two, three, places, a_variable]


def fresh(step: int) -> Pair:
    return torch.full((4, 4), float(step)), torch.ones(4, 4)


@pytest.mark.parametrize("program", KNOWN, ids=lambda program: program.__name__)
def test_which_tensors_share_memory_follows_from_the_program(program: Program) -> None:
    traced = trace(program, backend="eager")
    kept = []
    for step in range(4):
        x, y = fresh(step)
        kept += [x, y]  # other inputs lie elsewhere
        assert torch.equal(traced(x, y), program(x, y))
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == 3, traced.explain()


def inputs(x: Tensor, y: Tensor) -> Tensor:
    return attend(x, y, y)


def views_of_inputs(x: Tensor, y: Tensor) -> Tensor:
    first, second = x[1:], y[1:]
    return x + 1 if first.data_ptr() == second.data_ptr() else x + 2


@pytest.mark.parametrize("program", [inputs, views_of_inputs])
def test_whether_inputs_share_memory_is_asked_in_each_call(program: Program) -> None:
    traced = trace(program, backend="eager")
    kept = []
    for step in range(6):
        x, y = fresh(step)
        y = (y, y, x.view(4, 4), y, x, x.view(4, 4))[step]
        kept += [x, y]
        assert torch.equal(traced(x, y), program(x, y)), step
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] >= 2, traced.explain()


def a_value(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    return h + min(h.data_ptr(), 1)


def in_a_set(x: Tensor, y: Tensor) -> Tensor:
    h, g = x + 1, y + 1
    return h * len({h.data_ptr(), g.data_ptr(), h.data_ptr()})


def of_a_value(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    row, first = h.select(0, (x[0, 0] > 1).long()), h[0]
    return h if row.data_ptr() == first.data_ptr() else h * 2


def of_an_array(x: Tensor, y: Tensor) -> Tensor:
    array = torch.ones(3).numpy().copy()
    first, second = torch.from_numpy(array), torch.from_numpy(array)
    return x if first.data_ptr() == second.data_ptr() else x * 2


def of_nothing(x: Tensor, y: Tensor) -> Tensor:
    first, second = x[:0] + 1, y[:0] + 1
    return x if first.data_ptr() == second.data_ptr() else x * 2


def behind_an_exception(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    begins = h.data_ptr()
    try:
        [].pop()
    except IndexError:
        return h if begins == y.data_ptr() else h * 2
    return x


def in_a_closure(x: Tensor, y: Tensor) -> Tensor:
    h = x + 1
    return (lambda: h if h.data_ptr() == y.data_ptr() else h * 2)()


OTHERS: list[Program] = [
    *(a_value, in_a_set, of_a_value, of_an_array, of_nothing),
    *(behind_an_exception, in_a_closure),
]


@pytest.mark.parametrize("program", OTHERS, ids=lambda program: program.__name__)
def test_other_uses_of_addresses_split_the_program(program: Program) -> None:
    traced = trace(program, backend="eager")
    for step in range(5):
        x, y = fresh(step)
        assert torch.equal(traced(x, y), program(x, y)), step
    assert traced.breaks, traced.explain()


def test_memory_of_a_tensor_that_is_gone_may_be_taken_again() -> None:
    def program(x: Tensor) -> tuple[Tensor, bool]:
        h = x + 1
        begins = h.data_ptr()
        del h
        g = x * 2
        return g, begins == g.data_ptr()

    traced = trace(program, backend="eager")
    for step in range(4):
        assert torch.equal(traced(torch.ones(4) * step)[0], torch.ones(4) * step * 2)
    assert "data_ptr" in {item.detail for item in traced.breaks}, traced.explain()


def test_an_address_of_a_weight_is_guarded() -> None:
    weight, seen = torch.ones(3), list[int]()

    def program(x: Tensor) -> Tensor:
        return x * weight if weight.data_ptr() not in seen else x

    traced = trace(program, backend="eager")
    for _ in range(3):
        assert traced(torch.ones(3)).sum() == 3
    assert traced.stats()["hits"] == 2, traced.explain()
    seen.append(weight.data_ptr())
    weight *= 2
    assert traced(torch.ones(3)).sum() == 3
