"""numpy beside tensors: arrays guarded by value, numbers, conversion to tensors."""

from __future__ import annotations

import numpy as np
import torch
from topic_checks import HIT, MISS, run_and_check, traced


def array(a, b):
    return a * float((b + 1).sum())


def test_an_array_is_guarded_by_value():
    target = traced(array)
    x = torch.rand(2)
    for number, values in enumerate(([1.0, 2.0], [1.0, 3.0])):
        b = np.array(values)
        run_and_check(target, [MISS, HIT], number + 1, array(x, b), x, b)


def floor(x, n):
    half = int(np.floor(n / 2))
    return x[half:] * half


def test_int_of_floor():
    target = traced(floor)
    for outcome in (MISS, HIT):
        x = torch.rand(4)
        run_and_check(target, [outcome], 1, floor(x, 5), x, 5)
    x = torch.rand(4)
    run_and_check(target, [MISS], 2, floor(x, 2), x, 2)


def to_tensor(x):
    return x + torch.tensor(np.array([1.0, 2.0], dtype=np.float32))


def test_a_tensor_of_an_array():
    target = traced(to_tensor)
    for outcome in (MISS, HIT):
        x = torch.rand(2)
        run_and_check(target, [outcome], 1, to_tensor(x), x)


def part(x, b):
    return x * float(b[1:].sum()), b[::2].tolist()


def test_a_part_of_an_array():
    target = traced(part)
    x = torch.rand(2)
    for number, values in enumerate(([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])):
        b = np.array(values)
        run_and_check(target, [MISS, HIT], number + 1, part(x, b), x, b)
