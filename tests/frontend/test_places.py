"""Parts of tensors at places that change: one record answers all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

PLACES = (2, 3, 4, 5, 6, 7, 2, 4, -1, -8, -3, 0, 1, 6)


def write(x: Tensor, i: int) -> Tensor:
    x[:, i] = x[:, 3] * 2 + i
    return x.sum(0)


def write_number(x: Tensor, i: int) -> Tensor:
    x[1, i] = 3.0
    return x


def write_row_of_one(x: Tensor, i: int) -> Tensor:
    x[..., i, :] = torch.ones(1, 1, x.shape[-1])
    return x * 2


READS: dict[str, Callable[[Tensor, int], Any]] = {
    "row": lambda x, i: x[:, i] * 2,
    "last": lambda x, i: x.transpose(1, 2)[..., i].exp(),
    "new dimension": lambda x, i: x[None, 1, i] + x[:, None, i, 1:3].sum(),
    "view": lambda x, i: x[:, i],
    "two": lambda x, i: x[1, i] + x[0, 7 - i] if i >= 0 else x[1, i],
    "slice beside": lambda x, i: x[:2, i, ::2],
    "tensor beside": lambda x, i: x[torch.tensor([0, 2]), i],
}
WRITES = (write, write_number, write_row_of_one)


def same(program: Callable[[Tensor, int], Any], traced: Any, i: int) -> None:
    torch.manual_seed(i)
    expected_input, given = (torch.arange(3 * 8 * 5.0).reshape(3, 8, 5) for _ in "ab")
    expected, found = program(expected_input, i), traced(given, i)
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride()
    assert found.storage_offset() == expected.storage_offset()
    assert torch.equal(given, expected_input)


@pytest.mark.parametrize("program", WRITES, ids=lambda program: program.__name__)
def test_writes(program: Callable[[Tensor, int], Any]) -> None:
    traced = trace(program, backend="eager")
    for i in PLACES:
        same(program, traced, i)
    assert traced.stats()["hits"] >= 8


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    program = READS[name]
    traced = trace(program, backend="eager")
    for i in PLACES:
        same(program, traced, i)
    # Indices that are tensors are left to torch, which takes a number for its value.
    assert traced.stats()["hits"] >= (3 if name == "tensor beside" else 8)


def test_a_place_outside_raises_as_in_eager() -> None:
    program = READS["row"]
    traced = trace(program, backend="eager")
    for i in PLACES[:6]:
        same(program, traced, i)
    for i in (8, -9, 2**40):
        with pytest.raises(IndexError) as expected:
            program(torch.zeros(3, 8, 5), i)
        with pytest.raises(IndexError) as found:
            traced(torch.zeros(3, 8, 5), i)
        assert str(found.value) == str(expected.value)
        same(program, traced, 5)


def test_tensors_of_other_lengths() -> None:
    def program(x: Tensor, i: int) -> Tensor:
        return x[i] * 2

    traced = trace(program, backend="eager")
    firsts = ((5, 2), (6, 3), (7, 6), (9, 8), (7, 5), (6, -6), (12, 11))
    for length, i in (*firsts, (8, 4), (10, 9), (11, 0), (13, 7), (11, -1)):
        x = torch.randn(length, 3)
        assert torch.equal(traced(x, i), program(x, i))
    with pytest.raises(IndexError, match="out of bounds"):
        traced(torch.randn(6, 3), 6)
    assert traced.stats()["hits"] >= 3
