"""Operators on constants give what torch gives; the compiler's own folding does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

Make = Callable[[], Tensor]

UNIFORM = {
    f"{dtype}_{number}": (dtype, number)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32)
    for number in (0, 1, -1, 5)
} | {"half": (torch.float32, -2.5), "true": (torch.bool, True)}


def calls_of(make: Make) -> list[Any]:
    x = make()
    if x.dtype is torch.bool:
        return [~x, x & ~x, x.float() - 1.5, torch.where(x, -1.0, 1.0)]
    common = [x + -1, x - -2, x * -3, x.sign(), x + make().double(), x < 0, x == -1]
    common += [torch.where(x > -1, x, -x), (x * -2).expand(2, 3, 4).sum(), x.relu()]
    if x.is_floating_point():
        common += [x.trunc(), x.floor(), x.round(), x + x.int(), x.exp() - 1]
        common += [torch.maximum(x, x * -1), x.clamp(min=-1)]
    return common


@pytest.mark.parametrize("name", UNIFORM)
def test_tensors_of_one_number(name: str, check: Callable[..., Any]) -> None:
    dtype, number = UNIFORM[name]
    check(lambda x: [*calls_of(lambda: torch.full((3, 4), number, dtype=dtype)), x * 2],
          torch.randn(3, 4))  # fmt: skip


def test_made_like_an_input(check: Callable[..., Any]) -> None:
    check(lambda x: (torch.zeros_like(x) + (-1), x - torch.ones_like(x) * -2),
          torch.randn(3, 4))  # fmt: skip


def test_numbers_of_a_program(check: Callable[..., Any]) -> None:
    def program(x: Tensor) -> list[Tensor]:
        made = torch.tensor([1.0, -2.5, 3.0])
        whole = torch.tensor([1, -2, 3])
        calls = [made.trunc(), made.sign(), made + -1, made * whole, whole * -1.5]
        return [*calls, whole < 0, whole - torch.arange(3), x + made]

    check(program, torch.randn(2, 3))


def test_what_cannot_be_computed_raises_at_the_call(check: Callable[..., Any]) -> None:
    def program(x: Tensor) -> Tensor:
        zero = torch.zeros(3, dtype=torch.int64)
        return x + torch.ones(3, dtype=torch.int64) // zero

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        check(program, torch.randn(3))
