"""External steps that native code runs on the addresses of a frame."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from magweld.artifact import ExternalStep, Place, Program, Value
from magweld.runtime.native_steps import ResultForm
from magweld.runtime.program import LoadedProgram

FLOATS = 6
FORM: ResultForm = ((FLOATS,), (1,), torch.float32)


@dataclass
class Copies:
    """Writes its operand to all results.

    Attributes:
        results: What it makes.
        ran: The numbers that it was run with.
    """

    results: tuple[ResultForm, ...] = (FORM, FORM)
    ran: list[tuple[int, ...]] = field(default_factory=list)

    def run(self, table: int, ids: tuple[int, ...]) -> None:
        self.ran.append(ids)
        read, *written = ids
        addresses = (ctypes.c_int64 * (max(ids) + 1)).from_address(table)
        for number in written:
            ctypes.memmove(addresses[number], addresses[read], 4 * FLOATS)


def program(place: Place = Place.ADOPTED) -> Program:
    """Return a program whose step has two results; one of them is returned."""
    values = (
        Value((FLOATS,), "f32", Place.ADOPTED),
        Value((FLOATS,), "f32", Place.INPUT),
        Value((FLOATS,), "f32", place),
    )
    steps = (ExternalStep("copies", (1,), (2, 0)),)
    return Program(values, steps, results=(0,), arena_bytes=64)


def by_operator(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    return tensors[0] + 1, tensors[0] + 1


def test_results_are_made_by_native_code() -> None:
    native = Copies()
    loaded = LoadedProgram(program(), by_operator, natives={"copies": native})
    for number in range(3):
        x = torch.full((FLOATS,), float(number))
        assert torch.equal(loaded([x])[0], x)
    assert native.ran == [(1, 2, 0)] * 3


@pytest.mark.parametrize(
    "results",
    [
        (FORM,),
        (FORM, ((FLOATS,), (1,), torch.int32)),
        (FORM, ((FLOATS + 1,), (1,), torch.float32)),
        (FORM, ((FLOATS,), (2,), torch.float32)),
    ],
)
def test_an_operator_runs_where_native_code_makes_something_else(
    results: tuple[ResultForm, ...],
) -> None:
    native = Copies(results)
    loaded = LoadedProgram(program(), by_operator, natives={"copies": native})
    x = torch.zeros(FLOATS)
    assert torch.equal(loaded([x])[0], x + 1)
    assert not native.ran


def test_an_operator_runs_that_writes_to_the_arena() -> None:
    native, x = Copies(), torch.zeros(FLOATS)
    where = program(Place.ARENA)
    loaded = LoadedProgram(where, by_operator, natives={"copies": native})
    assert torch.equal(loaded([x])[0], x + 1)
    assert not native.ran


def test_results_are_fresh_where_the_step_makes_memory() -> None:
    assert not LoadedProgram(program(), by_operator).results_are_fresh
    assert LoadedProgram(program(), by_operator, fresh={"copies"}).results_are_fresh
    twice = Program(program().values, program().steps, (0, 0), 64)
    assert not LoadedProgram(twice, by_operator, fresh={"copies"}).results_are_fresh
