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


def data_of(y):
    return y.data * 2.0


def call_data(x):
    return data_of(x) + x.data


class Scale:
    """Its method makes closures that read it."""

    def __init__(self, factor):
        self.factor = factor

    def maker(self):
        def outer(y):
            def inner(z):
                return z * self.factor

            return inner(y) + self.factor

        return outer


def call_closure_of_self(x):
    return Scale(3.0).maker()(x)


def callee_pair(pair, *, scale):
    return pair[0] * scale + pair[1]


def call_tuple_and_keyword(x):
    return callee_pair((x, x + 1.0), scale=2.0)


PROGRAMS = [
    call_data,
    call_closure_of_self,
    call_tuple_and_keyword,
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


class Doubled(torch.autograd.Function):
    """Keeps a number in its context."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


def custom_function(x):
    return Identity.apply(x)


def custom_in_class(x):
    return Doubled.apply(x, 2.0) + Doubled.apply(x, 3.0)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("program", [custom_function, custom_in_class])
def test_custom_functions(program, gradients):
    target = traced(program)
    with torch.set_grad_enabled(gradients):
        for outcome in (MISS, HIT, HIT):
            x = torch.rand(2)
            expected = program(x)
            result = run_and_check(target, [outcome], 1, expected, x)
            assert (result is x) == (expected is x)


def rows(x):
    return (row * 2.0 for row in x)


def test_a_generator_that_is_returned_is_refused():
    target = traced(rows)
    for _ in range(3):
        x = torch.rand(2, 3)
        assert agree(list(target(x)), list(rows(x)))
    assert [found.id for found in target.breaks] == ["result-object"]
    assert target.stats()["records"] == 0


def consumes(x):
    first, second = rows(x)
    return first + second, tuple(row + 1.0 for row in (first, second))


def test_a_generator_that_is_unpacked():
    target = traced(consumes)
    for outcome in (MISS, HIT):
        x = torch.rand(2, 3)
        run_and_check(target, [outcome], 1, consumes(x), x)


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
