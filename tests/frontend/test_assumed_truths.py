"""Truths of tensors that no branch and no guard stands for: hits assume them."""

from __future__ import annotations

import pytest
import torch

from magweld.frontend.traced import trace


def cut(x):
    """The two ways have results of their own shapes, or none."""
    side = torch.randint(0, 1, (1,))
    count = torch.randint(1, 3, (1,))
    if side == 0:
        return x[:-count]
    if side == 1:
        return x[count:]
    return None


def newton(x):
    y = x * 1e5
    for _ in range(60):
        y = (y + x / y) * 0.5
        if torch.isclose((y * y - x).norm(), torch.zeros(()), atol=1e-3):
            break
    return y


@pytest.mark.parametrize("program", [cut, newton], ids=lambda f: f.__name__)
def test_a_truth_that_stays_splits_no_program(program):
    traced = trace(program, backend="eager", check=True)
    x = torch.rand(6) + 1
    for seed in range(6):
        torch.manual_seed(seed)
        result = traced(x)
        torch.manual_seed(seed)
        assert torch.equal(result, program(x))
    assert traced.stats()["hits"] == 5, traced.explain()
    assert traced.records[0].assumes
    assert not traced.breaks


class Coin(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.heads = []

    def forward(self, x):
        self.calls.add_(1)
        y = x * torch.rand(3)
        if torch.rand(1) < 0.5:
            self.heads.append(2.0)
            return [y]
        return y, self.calls * 1


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_a_hit_that_takes_the_other_way_has_done_nothing(check, gradients):
    mine, theirs = Coin(), Coin()
    traced = trace(mine, backend="eager", check=check)
    x = torch.ones(3)
    with torch.set_grad_enabled(gradients):
        for seed in range(24):
            torch.manual_seed(seed)
            result, state = traced(x), torch.get_rng_state()
            torch.manual_seed(seed)
            assert repr(result) == repr(theirs(x))
            assert torch.equal(state, torch.get_rng_state())
            assert (mine.calls, mine.heads) == (theirs.calls, theirs.heads)
    # Two of them have failed: since then the program is split at the test.
    assert sum(item.id == "hit-raised" for item in traced.breaks) <= 2
    assert not any(record.assumes for record in traced.records)
    assert traced.stats()["hits"] > 20


def test_compiled_code_fails_as_well():
    traced = trace(cut_or_double, compile="now")
    x = torch.rand(8)
    with torch.no_grad():
        for scale in (1.0, 2.0, -1.0, 3.0, -2.0, 1.0, -1.0):
            expected = cut_or_double(x * scale)
            result = traced(x * scale)
            assert type(result) is type(expected)
            torch.testing.assert_close(result, expected)


def cut_or_double(x):
    y = (x + 1).exp() * 2 - 1
    for _ in range(50):
        y = y * 0.99 + 0.01
    if y.sum() > 20:
        return y[:4] * 2
    return (y,)
