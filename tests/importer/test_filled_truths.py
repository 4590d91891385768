"""Truths that are filled with numbers are true for all but zero."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("number", [0, 1, 2, 6, -2, 256, 0.5, 2.0, True])
def test_numbers_are_truths(check: Any, number: float) -> None:
    def program(x: torch.Tensor) -> Any:
        y = x > 0
        return (
            torch.full((3,), number, dtype=torch.bool),
            torch.full_like(y, number),
            y.new_full((2,), number),
            torch.fill(y, number),
            y.masked_fill(x > 0.5, number),
            F.pad(y, (1, 1), value=number),
        )

    check(program, torch.linspace(-1, 1, 7))
