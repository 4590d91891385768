"""Numbers made of addresses: no hit has those of the recorded run."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace


class Box:
    """Copied with a break in the middle."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __deepcopy__(self, memo: dict[int, Any]) -> Box:
        os.getpid()
        return Box(self.item + 1)


class Plain:
    def __init__(self, item: Any) -> None:
        self.item = item


def of_a_tensor(x: Tensor) -> Any:
    y = x * 2
    return copy.deepcopy([y, y]), y


def with_a_break(x: Tensor) -> Any:
    box = Box(x * 2)
    return copy.deepcopy([box, [box]]), x + 1


def with_a_list(x: Tensor) -> Any:
    box = Plain([x * 2])
    box.item.append(Box(x))
    return copy.deepcopy((box, box.item)), x + 1


PROGRAMS = [of_a_tensor, with_a_break, with_a_list]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_no_recording_ends_within_a_copy(program: Any) -> None:
    """It notes addresses of copied objects, which other calls do not have."""
    fast = trace(program, backend="eager", check=True)
    for number in range(5):
        x = torch.ones(2) * number
        (first, second), result = fast(x)
        assert torch.equal(result, program(x)[1])
        if program is of_a_tensor:
            assert first is second
        elif program is with_a_break:
            assert first is second[0]
        else:
            assert first.item is second
    assert fast.stats()["hits"] > 0, fast.explain()
    places = [record.ends.where for record in fast.records if record.ends is not None]
    assert all(__file__ in place for place in places), places


def test_a_memo_of_the_program_has_the_addresses_of_the_call() -> None:
    def program(x: Tensor, memo: dict[int, Any]) -> Any:
        box = Plain(x * 2)
        return copy.deepcopy(box, memo), box

    fast = trace(program, backend="eager")
    for _ in range(4):
        memo: dict[int, Any] = {}
        made, box = fast(torch.ones(2), memo)
        assert memo[id(box)] is made


def test_a_memo_lasts_behind_a_break() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        memo: dict[int, Any] = {}
        box = Plain(1)
        made = copy.deepcopy(box, memo)
        z = x * 2 + y
        os.getpid()
        return copy.deepcopy(box, memo) is made, id(box) in memo, z.relu() * 3

    fast = trace(program, backend="eager")
    for _ in range(5):
        assert fast(torch.ones(2), torch.ones(2))[:2] == (True, True)
