"""Functions with a backward of their own, called where no gradient is asked for."""

from __future__ import annotations

import pytest
import torch

from magweld.frontend import trace

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
    def forward(x, factor=2.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]


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


class Bound(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x, factor):
        ctx.factor = factor
        return x * factor


class Bare(torch.autograd.Function):
    def forward(ctx, x):
        return x * 5.0


class Decides(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2.0 if x.sum() > 0 else x


class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        FACTORS["calls"] = 3.0
        return x * FACTORS["calls"], "text", None


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return y, Decides.apply(x), x


FORWARDS = {
    "late": lambda x: Late.apply(x),
    "late, all given": lambda x: Late.apply(x, 3.0),
    "class method": lambda x: Bound.apply(x, 3.0),
    "plain function": lambda x: Bare.apply(x),
    "value": lambda x: Decides.apply(x),
    "state": lambda x: Counts.apply(x),
    "nested": lambda x: Both.apply(x, x[1:]),
    "written": lambda x: Both.apply(x * 1.0, x + 1.0)[2].mul_(3.0),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_forward_is_a_function_like_any_other(checker, monkeypatch, name):
    monkeypatch.setitem(FACTORS, "calls", 3.0)
    check = checker(FORWARDS[name])
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        assert check(X * 2) == "hit", check.traced.explain()
    assert FACTORS["calls"] == 3.0


def test_a_value_that_forward_reads_decides(checker):
    check = checker(FORWARDS["value"])
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        check(-X)
        assert check(-X * 2) == "hit", check.traced.explain()
        assert check(X * 2) == "hit", check.traced.explain()


@pytest.mark.parametrize("name", ["late", "class method", "plain function"])
def test_forms_of_functions_with_gradients(checker, name):
    check = checker(FORWARDS[name])
    assert check(X.clone().requires_grad_()) == "record", check.traced.explain()
    assert check(X.clone().requires_grad_()) == "hit", check.traced.explain()


def test_gradients_of_the_function_are_kept(checker):
    check = checker(lambda x: Scale.apply(x, 1)[0])
    x = X.clone().requires_grad_()
    check(x)
    check.traced(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 100.0))


def chosen(x):
    return x * 2.0 if x.sum() > 0 else x


class Chooses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return chosen(x)


@pytest.mark.parametrize("function", [Decides, Chooses])
def test_a_branch_does_not_decide_which_object_comes_back(function):
    def program(x):
        return function.apply(x) is x, function.apply(x)

    traced = trace(program, backend="eager")
    with torch.no_grad():
        for sign in (1.0, 1.0, -1.0, 1.0, -1.0, -1.0):
            x = X.abs() * sign
            mine, theirs = traced(x), program(x)
            assert mine[0] is theirs[0] is False
            assert torch.equal(mine[1], theirs[1])
            assert mine[1] is not x
