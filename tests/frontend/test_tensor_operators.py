"""Operators on tensors that torch writes in Python are recorded as any other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

OPERATORS: dict[str, Callable[[Any], Any]] = {
    "power": lambda x: x**2,
    "reflected power": lambda x: 2**x,
    "reflected difference": lambda x: 1.0 - x,
    "reflected quotient": lambda x: 2 / x,
    "floor": lambda x: x // 2 + 2 // x,
    "remainder": lambda x: x % 2 + 2 % x,
    "signs": lambda x: (-x, +x, abs(x)),
    "comparisons": lambda x: (x == 1, 1 != x, 0 < x, ~(x > 0)),
    "length": lambda x: x * len(x),
    "function": lambda x: operator.pow(x, 2),
    "elements": lambda x: [part + 1 for part in x],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_recorded(checker: Any, name: str) -> None:
    check = checker(OPERATORS[name])
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"
