"""Flags, forms and gradients of tensors that a program reads or replaces."""

from __future__ import annotations

import pytest
import torch
from torch import nn

X = torch.tensor([[1.0, -2.0, 3.0]])


def clears_flag(x):
    y = x * 2.0
    y.requires_grad = False
    return y


def changes_form(x):
    y = (x * 2.0).unsqueeze_(0)
    z = y.sum(0).t_()
    return y, z, z.shape


def replaces_data(x):
    y = x.clone()
    z = y.view(-1)
    y.data = x * 3.0
    z.add_(1.0)
    return y, z


def asks_about_gradients(x):
    y = x + 1.0
    known = (x.is_leaf, y.grad_fn, y.grad, y.is_leaf)
    return y if known == (True, None, None, True) else x


def converts(x):
    return x.type(torch.LongTensor), x.type(torch.float64), x.type("torch.HalfTensor")


PROGRAMS = [clears_flag, changes_form, replaces_data, asks_about_gradients, converts]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program_is_captured(checker, program):
    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(X * 2) == "hit", check.traced.explain()


def test_a_predicate_sees_replaced_data(checker):
    def program(x):
        y = torch.zeros(3)
        y.data = x * 3.0
        return x if y.sum() > 0 else -x

    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(-X) == "record", check.traced.explain()
    assert check(X) == "hit", check.traced.explain()


def test_the_form_of_an_argument_stays_the_callers(checker):
    check = checker(lambda x: x.clone() if x.squeeze_() is x else x)
    assert check(X.clone()) == "tensor-write"
    assert check(X[0].clone()) in ("record", "tensor-write")


def test_gradients_of_an_argument_are_no_constants(checker):
    check = checker(lambda x: x if x.grad is None else x + x.grad)
    assert check(X) == "autograd-graph"
    x = X.clone().requires_grad_()
    x.grad = X.clone()
    assert check(x.detach()) == "autograd-graph"


def test_hooks_of_the_backward_pass(checker):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda *args: None)
    check = checker(layer)
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        assert check(X * 2) == "hit", check.traced.explain()


def test_an_attribute_that_warns(checker):
    check = checker(lambda x: x * 2.0 if x.volatile else x * 3.0)
    for outcome in ("record", "hit"):
        with pytest.warns(UserWarning, match="volatile"):
            assert check(X) == outcome, check.traced.explain()
    with pytest.warns(UserWarning, match="volatile"):
        check.traced(X)
