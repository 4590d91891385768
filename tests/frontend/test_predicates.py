"""Truths of tensors that the run has written: computed on copies on every call."""

from __future__ import annotations

import sys

import torch

from magweld.frontend import trace


class Counter(torch.nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.register_buffer("count", torch.zeros(2, 2))
        self.limit = limit

    def forward(self, x):
        self.count[0].add_(x.shape[0])
        rate = x.shape[0] / self.count.sum()
        assert rate > 0
        if self.count.max() > self.limit:
            raise ValueError("too many")
        return x * rate


def outcome(module, x):
    try:
        return module(x)
    except ValueError as error:
        return str(error)


def test_a_check_of_written_state_is_a_guard():
    module, eager = Counter(6.0), Counter(6.0)
    traced = trace(module, backend="eager")
    for number in range(5):
        x = torch.full((2,), 1.0 + number)
        mine, theirs = outcome(traced, x), outcome(eager, x)
        same = torch.equal(mine, theirs) if number < 3 else mine == theirs == "too many"
        assert same, traced.explain()
        assert torch.equal(module.count, eager.count)
    assert traced.stats()["hits"] == 2, traced.explain()


def test_memory_under_two_names_is_not_copied():
    def function(x, y):
        x.add_(1.0)
        assert (x + y).sum() > 0
        return x * 2.0

    traced = trace(function, backend="eager")
    for _ in range(3):
        x = torch.ones(4)
        assert torch.equal(traced(x, x[:]), torch.full((4,), 4.0))
    assert traced.stats()["hits"] == 0 or traced.breaks


def test_random_numbers_are_not_drawn_for_a_check():
    def function(x):
        x.add_(torch.rand(4))
        assert x.sum() > 0
        return x * 2.0

    traced = trace(function, backend="eager")
    for _ in range(3):
        results = []
        for call in (traced, function):
            torch.manual_seed(3)
            results.append(call(torch.ones(4)))
        assert torch.equal(*results)
    assert [item.id for item in traced.breaks] == ["tensor-value"]


def is_false(value):
    try:
        return not value
    except Exception:
        return True


def test_a_way_that_ends_in_a_handler_leaves_no_exception_behind():
    # The check of what is caught is the last that is observed of the other way.
    def function(x, y):
        x.add_(1.0)
        positive = (x + y).sum() > 0
        if not positive:
            raise ValueError(is_false(positive))
        return x * 2.0

    traced = trace(function, backend="eager")
    for _ in range(3):
        x = torch.ones(4)
        assert torch.equal(traced(x, x[:]), torch.full((4,), 4.0))
        assert sys.exc_info() == (None, None, None)
