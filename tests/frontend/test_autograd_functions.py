"""Functions with a backward of their own, called where no gradient is asked for."""

from __future__ import annotations

import pytest
import torch

X = torch.tensor([1.0, -2.0, 3.0])
FACTORS = {"scale": 2.0}


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        factor = 7.0 if ctx.needs_input_grad[0] else FACTORS["scale"]
        return x * factor**power, x + 1.0

    @staticmethod
    def backward(ctx, grad, other):
        return grad * 100.0, None


class Grow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1.0)
        return x


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x


class Late(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2.0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


PROGRAMS = {
    "scale": lambda x: Scale.apply(x, 3),
    "grow": lambda x: Grow.apply(x.clone()) * 2.0,
    "same": lambda x: Same.apply(x * 2.0).add_(1.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_function_without_gradients(checker, name):
    check = checker(PROGRAMS[name])
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        assert check(X * 2) == "hit", check.traced.explain()


def test_state_that_the_forward_reads(checker, monkeypatch):
    check = checker(PROGRAMS["scale"])
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        monkeypatch.setitem(FACTORS, "scale", 5.0)
        assert check(X) == "record", check.traced.explain()
        leaf = X.clone().requires_grad_()
        assert check(leaf) == "record", check.traced.explain()
        monkeypatch.setattr(Scale, "forward", staticmethod(lambda ctx, x, k: (x, x)))
        assert check(X) == "record", check.traced.explain()


def test_a_context_set_up_apart_is_left_alone(checker):
    check = checker(lambda x: Late.apply(x))
    with torch.no_grad():
        assert check(X) not in ("record", "hit")


def test_gradients_of_the_function_are_kept(checker):
    check = checker(lambda x: Scale.apply(x, 1)[0])
    x = X.clone().requires_grad_()
    check(x)
    check.traced(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 100.0))
