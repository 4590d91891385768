"""Tensors: shapes, dtypes, subscripts, iteration, functional calls, state of torch."""

from __future__ import annotations

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced
from torch.nn import functional as F


def add(a, b):
    return a + b


def test_new_shape_and_new_dtype_are_new_records():
    target = traced(add)
    a, b = torch.rand(2), torch.rand(2)
    run_and_check(target, [MISS, HIT], 1, a + b, a, b)
    c, d = torch.rand(3), torch.rand(3)
    run_and_check(target, [MISS, HIT], 2, c + d, c, d)
    e = c.double()
    run_and_check(target, [MISS, HIT], 3, e + d, e, d)
    run_and_check(target, [HIT], 3, b + a, b, a)


def test_tensor_with_scalar():
    target = traced(add)
    a = torch.rand(2)
    run_and_check(target, [MISS, HIT], 1, a + 1, a, 1)
    run_and_check(target, [MISS, HIT], 2, a + 1.0, a, 1.0)
    run_and_check(target, [HIT], 2, a + 1, a, 1)


SUBSCRIPTS = [
    lambda x: x[1],
    lambda x: x[None],
    lambda x: x[torch.tensor([0, 1])],
    lambda x: x[:, 1:],
    lambda x: x[..., 0],
    lambda x: x[1, 0],
    lambda x: x[1:2, None, ::2],
]


@pytest.mark.parametrize("program", SUBSCRIPTS, ids=range(len(SUBSCRIPTS)))
def test_subscripts(program):
    target = traced(program)
    for outcome in (MISS, HIT):
        x = torch.rand(2, 3)
        run_and_check(target, [outcome], 1, program(x), x)


def relu(x):
    return F.relu(x), F.relu(x, inplace=False)


def fx_nest(x):
    return torch.cat([x] + [x.mul(0)] * 2, 0)


def shape(x):
    return x.shape, x.size(), x.dtype, x.dim()


def new(x):
    return x.data.new().resize_as_(x).fill_(1.0)


def iterate(x):
    total = 0.0
    for index, row in enumerate(x):
        total = total + row * index
    for row in x:
        total = total - row
    return total


def call_ex(x):
    return torch.add(*x)


def convert(x):
    return x.type(torch.LongTensor), x.type(torch.float64), x.data.type(x.dtype)


def without_gradient(x):
    with torch.no_grad():
        y = x * 2.0
    return y + 1.0


def set_items(x):
    y = x.clone()
    for index in range(2):
        y[index] = y[index] * index
        y[index, 0] = 7.0
    return y


def by_name(x):
    return getattr(F, "relu")(x), getattr(torch, "add")(x, 1.0)  # noqa: B009


def device_states(x):
    devices = {arg.get_device() for arg in (x, 1) if isinstance(arg, torch.Tensor)}
    states = [x + device for device in devices]
    return list(devices), states


PROGRAMS = [
    relu,
    fx_nest,
    shape,
    new,
    device_states,
    iterate,
    call_ex,
    convert,
    without_gradient,
    set_items,
    by_name,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    target = traced(program)
    for outcome in (MISS, HIT):
        x = torch.rand(2, 3) * 4.0 - 2.0
        run_and_check(target, [outcome], 1, program(x), x)


def item(x):
    return x.item() + 1.0


def test_item():
    target = traced(item, dynamic={"item(args[0])": True})
    for outcome, value in ((MISS, 1.0), (HIT, 1.0), (HIT, 2.0)):
        x = torch.tensor(value)
        run_and_check(target, [outcome], 1, item(x), x)
    target = traced(item, dynamic="auto")
    for outcome, value in ((MISS, 1.0), (HIT, 3.0), (HIT, 2.0)):
        x = torch.tensor(value)
        run_and_check(target, [outcome], 1, item(x), x)


def draw(x):
    return x + 1.0


def test_the_random_state_is_left_alone():
    import random

    target = traced(draw)
    random.seed(1)
    expected = random.random()
    random.seed(1)
    run_and_check(target, [MISS, HIT], 1, torch.ones(2) + 1.0, torch.ones(2))
    assert random.random() == expected
