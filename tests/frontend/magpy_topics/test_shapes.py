"""Shapes that change: sizes of views, factories and slices, relations, branches."""

from __future__ import annotations

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced
from torch import nn


def view_and_fill(x):
    rows, columns = x.shape
    return x.view(rows * columns) + torch.ones((rows * columns,)) * rows


def callee(a, size):
    return a[:size]


def slices(x):
    return callee(x, x.size(0) - 1) * 2.0


def smallest(x):
    return x * max(min(x.shape[0], 100), 2)


PROGRAMS = [view_and_fill, slices, smallest]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_lifted_size(program):
    target = traced(program, dynamic={"x": (0,)})
    for outcome, rows in ((MISS, 4), (HIT, 8), (HIT, 5)):
        x = torch.rand(rows, 3)
        run_and_check(target, [outcome], 1, program(x), x)


def test_minimum_and_maximum_are_computed_anew():
    target = traced(smallest, dynamic={"x": (0,)})
    for outcome, size in ((MISS, 4), (HIT, 9), (HIT, 120)):
        x = torch.ones(size)
        run_and_check(target, [outcome], 1, smallest(x), x)


class Scaled(nn.Module):
    """A Parameter is broadcast over a size that changes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.weight = nn.Parameter(torch.rand(1, 4))

    def forward(self, x):
        return self.linear(x) * self.weight


def test_a_module_with_a_lifted_batch():
    model = Scaled()
    target = traced(model, dynamic={"x": (0,)})
    with torch.no_grad():
        for outcome, rows in ((MISS, 2), (HIT, 7)):
            x = torch.rand(rows, 3)
            run_and_check(target, [outcome], 1, model(x), x)


class Gated(nn.Module):
    """A block runs when the data asks for it."""

    def __init__(self):
        super().__init__()
        self.block = nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0.0:
            x = torch.relu(self.block(x))
        else:
            x = x * 2.0
        return x + 1.0


def test_a_branch_on_data_is_right_on_both_ways():
    model = Gated()
    target = traced(model)
    with torch.no_grad():
        for sign in (1.0, -1.0, 1.0, -1.0):
            x = torch.rand(2, 3) * sign
            assert torch.allclose(target(x), model(x))
    assert target.stats()["hits"] >= 2
    assert target.stats()["breaks"] == 0
