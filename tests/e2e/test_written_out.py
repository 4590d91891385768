"""`explain()` says why operations that repeat are no loop, and where."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

STEPS = 12


def other_weights(x: Tensor, weights: Tensor) -> Tensor:
    for step in range(STEPS):
        x = torch.tanh(x @ weights[step % 2] + step * step)  # here
    return x


def far_back(x: Tensor, weights: Tensor) -> Tensor:
    made = [x + step for step in range(6)]
    for _ in range(STEPS):
        made.append(torch.tanh(made[-6] @ weights[0] + made[-1]))  # here
    return made[-1]


def through_torch(x: Tensor, weights: Tensor) -> Tensor:
    for _ in range(STEPS):
        y = torch.tanh(x @ weights[0])
        x = torch.sort(y)[0] * y + x  # here
    return x


def few(x: Tensor, weights: Tensor) -> Tensor:
    for _ in range(STEPS):
        x = torch.tanh(x @ weights[0])  # here
    return x


CASES: dict[str, Callable[..., Tensor]] = {
    "loop-other-values": other_weights,
    "loop-other-iterations": far_back,
    "loop-external": through_torch,
    "loop-too-small": few,
}


def explained(function: Callable[..., Tensor], steps: int = STEPS) -> list[str]:
    fast = trace(function, compile="now")
    inputs = torch.randn(4, 8), torch.randn(2, 8, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(*inputs), function(*inputs))
    return [line for line in fast.explain().splitlines() if "no loop of" in line]


@pytest.mark.parametrize("id", CASES)
def test_the_reason_and_the_line_are_told(id: str) -> None:
    function = CASES[id]
    lines, first = inspect.getsourcelines(function)
    place = first + next(n for n, line in enumerate(lines) if "# here" in line)
    (told,) = explained(function)
    assert f"[{id}]" in told
    assert f"{__file__}:{place}" in told
    assert f"no loop of {STEPS} x" in told


def test_nothing_is_told_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", 97)
    assert explained(few) == []


def test_nothing_is_told_of_a_handful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", 4)
    found: Any = explained(few)
    assert found == []
