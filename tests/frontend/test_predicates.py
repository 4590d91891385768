"""Values of tensors that decide about a run: what is computed of them on every call."""

from __future__ import annotations

import sys

import pytest
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


def halved(x, y):
    """Return a tensor that is halved until it is small, and how often it was."""
    rounds = 0
    while (x * y).abs().max() > 1.0:
        x = x / 2
        rounds += 1
    return x, rounds


def quotients_of(call):
    """Return how many quotients a call computes."""
    with torch.profiler.profile() as profile:
        call()
    return sum(event.name == "aten::div" for event in profile.events())


def test_a_hit_computes_no_iteration_of_a_loop_twice():
    traced = trace(halved, backend="eager")
    x, y = torch.tensor([50.0, 3.0]), torch.tensor([1.0, -1.0])
    for _ in range(2):
        traced(x, y)
    before = traced.stats()["hits"]
    # One time for all that is tested, and one for the result.
    assert quotients_of(lambda: traced(x, y)) == 2 * halved(x, y)[1]
    assert traced.stats()["hits"] == before + 1, traced.explain()


def test_tests_that_share_operators_tell_which_loop_ends_when():
    traced = trace(halved, backend="eager")
    y = torch.tensor([1.0, -1.0])
    for size in (50.0, 50.0, 9.0, 9.0, 50.0, 0.5, 0.5, 70.0, 9.0, float("nan"), 3e3):
        x = torch.tensor([size, 0.25])
        mine, theirs = traced(x, y), halved(x, y)
        assert mine[1] == theirs[1]
        assert torch.equal(mine[0].nan_to_num(7.0), theirs[0].nan_to_num(7.0))
    assert traced.stats()["hits"] > 3, traced.explain()


def test_values_and_truths_share_operators():
    def function(x):
        y = torch.sin(x) * 3
        if y.sum() > 0:
            y = y + int(y.argmax())
        if (y * 2).max() > 4:
            y = y * len(y.tolist())
        return y

    traced = trace(function, backend="eager")
    for number in (1, 1, 2, 1, 4, 4, 2, 5, 5, 1):
        x = torch.tensor([1.0, 2.0, 0.5]) * number
        assert torch.equal(traced(x), function(x))
    assert traced.stats()["hits"] > 2, traced.explain()


def before_a_write(x):
    whole = x + 0
    scaled = whole * 3
    whole.mul_(2)
    return whole.abs().sum() > 9, scaled.sum() > 1


def before_a_change_of_form(x):
    whole = x + 0
    whole.t_()
    turned = whole * 1
    whole.t_()
    return whole[0, 1] > 0, turned[0, 1] > 0


def behind_an_arm_that_writes(x):
    whole = x + 0
    if (whole.abs() > 1).any():
        for _ in whole[1:]:
            whole *= 2
        while (whole.abs() > 4).any():
            whole = whole.clamp(-9, 9) * 0.4
    return (whole.sum() > 1,)


@pytest.mark.parametrize(
    "truths", [before_a_write, before_a_change_of_form, behind_an_arm_that_writes]
)
def test_what_was_computed_before_a_write_is_not_computed_behind_it(truths):
    def function(x):
        number = 0
        for truth in truths(x):
            number = 2 * number + 1 if truth else 2 * number
        return x + number

    traced = trace(function, backend="eager")
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        x = torch.randn(2, 2, generator=generator)
        assert torch.equal(traced(x), function(x))
    assert traced.stats()["hits"] > 20, traced.explain()
