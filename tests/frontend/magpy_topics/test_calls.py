"""Calls of the user's functions, closures, classes and custom functions."""

from __future__ import annotations

import pytest
import torch
from topic_checks import HIT, MISS, agree, run_and_check, traced


def callee(a, b):
    return a + b


def call_scalar(a, b):
    return callee(a, b) * 2


def call_tensor(x):
    return callee(x, 1.0) * callee(x, x)


def call_defaults(x, scale=2.0, *, shift=1.0):
    return x * scale + shift


def call_keywords(x):
    return call_defaults(x) + call_defaults(x, 3.0) + call_defaults(x, shift=4.0)


def call_ex(x):
    sizes = (2, 3)
    arguments = {"shift": 2.0}
    arguments.update(scale=x[0])
    return x.view(*sizes) + call_defaults(x, **arguments).view(2, 3)


def call_inner(x):
    def inner(y):
        return y.mul(2.0) + x

    return inner(x + 1.0)


def even(x, n):
    return x if n == 0 else odd(x + 1.0, n - 1)


def odd(x, n):
    return x * 2.0 if n == 0 else even(x * 3.0, n - 1)


def call_mutual(x):
    return even(x, 5)


def call_high_order(x):
    rows = list(map(lambda row: row * 2.0, x))
    pairs = list(zip(x, rows, strict=True))
    return sum(a + b for a, b in pairs), list(map(callee, [], [])), list(enumerate([]))


def call_closure_of_closure(x):
    def outer(scale):
        def inner(y):
            return y * scale + x

        return inner

    return outer(2.0)(outer(x)(x))


def empty_cell(x):
    def uses_later(y):
        return later(y) + 1.0

    def later(y):
        return y * 2.0

    return uses_later(x)


def star_parameters(x):
    def apply(*b):
        return b[0] + b[1][0]

    return apply(x, (x * 2.0,))


PROGRAMS = [
    call_tensor,
    call_keywords,
    call_ex,
    call_inner,
    call_mutual,
    call_high_order,
    call_closure_of_closure,
    empty_cell,
    star_parameters,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    target = traced(program)
    for outcome in (MISS, HIT):
        x = torch.rand(6)
        run_and_check(target, [outcome], 1, program(x), x)


def test_call_with_scalars():
    target = traced(call_scalar)
    run_and_check(target, [MISS, HIT], 1, 6, 1, 2)
    run_and_check(target, [MISS, HIT], 2, 8, 1, 3)


class Holder:
    """Made and changed by programs."""

    def __init__(self, x, y=1.0):
        self.x = x
        self.y = y

    def double(self):
        self.x = self.x * 2.0
        return self


def make_object(x):
    return Holder(x + 1.0)


def make_and_change(x):
    holder = Holder(x)
    holder.y = holder
    holder.double().z = [x, holder.x]
    return holder


@pytest.mark.parametrize("program", [make_object, make_and_change])
def test_new_objects(program):
    target = traced(program)
    for number in range(3):
        x = torch.rand(2)
        result, expected = target(x), program(x)
        assert type(result) is Holder
        assert agree(result.x, expected.x)
        if program is make_and_change:
            assert result.y is result
            assert result.z[0] is x
            assert result.z[1] is x
        assert target.stats()["hits"] == number


def assign(holder):
    holder.x = holder.x + 1.0
    return holder


def test_an_attribute_of_an_argument_is_assigned():
    target = traced(assign)
    for outcome in (MISS, HIT):
        holder, other = Holder(torch.ones(2)), Holder(torch.ones(2))
        assert run_and_check(target, [outcome], 1, assign(other), holder) is holder


class Identity(torch.autograd.Function):
    """A custom function whose gradient is not that of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3.0


def custom_function(x):
    return Identity.apply(x)


def test_custom_functions_keep_their_results_distinct():
    target = traced(custom_function)
    for _ in range(3):
        x = torch.rand(2)
        result = target(x)
        assert torch.equal(result, x)
        assert (result is x) == (custom_function(x) is x)


def returns_closure(x, modules):
    def bottleneck(*values):
        joined = torch.cat(values, 0)
        return modules[0](joined)

    return bottleneck


def test_a_returned_closure():
    target = traced(returns_closure)
    modules = [torch.sin]
    for number in range(3):
        x = torch.rand(2)
        function = target(x, modules)
        assert agree(function(x, x), torch.sin(torch.cat([x, x])))
        assert function.__closure__[0].cell_contents is modules
        assert target.stats()["hits"] == number
