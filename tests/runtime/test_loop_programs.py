"""Steps that are loops: what runs, and what is refused before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.artifact import LibraryStep, LoopStep, Place, Program, Value
from magweld.runtime.container import decode_program, encode_program
from magweld.runtime.errors import ProgramError
from magweld.runtime.program import LoadedProgram

# h @ x[t]
PART = Program(
    values=(
        Value((2, 4), "f32", Place.INPUT, index=0),
        Value((4, 4), "f32", Place.INPUT, index=1),
        Value((2, 4), "f32", Place.OUTPUT),
    ),
    steps=(LibraryStep("matmul", (0, 1), (2,), {}),),
    results=(2,),
    arena_bytes=0,
)
LAST = LoopStep((0, 1), (2,), 0, 3, (0, 16), (0, 16), (0, -1), (False,), scratch=0)
LOOP = Program(
    values=(
        Value((2, 4), "f32", Place.INPUT, index=0),
        Value((4, 4, 4), "f32", Place.INPUT, index=1),
        Value((2, 4), "f32", Place.OUTPUT),
    ),
    steps=(LAST,),
    results=(2,),
    arena_bytes=64,
    parts=(PART,),
)
STACKED = replace(
    LOOP,
    values=(*LOOP.values[:2], Value((3, 2, 4), "f32", Place.OUTPUT)),
    steps=(replace(LAST, stacked=(True,)),),
)


def no_externals(node: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    raise AssertionError(node)


def inputs() -> list[Tensor]:
    return [torch.randn(2, 4), torch.randn(4, 4, 4)]


def test_the_last_result_is_returned() -> None:
    h, x = inputs()
    (found,) = LoadedProgram(LOOP, no_externals)([h, x])
    torch.testing.assert_close(found, h @ x[1] @ x[2] @ x[3])


def test_all_results_are_returned() -> None:
    h, x = inputs()
    (found,) = LoadedProgram(STACKED, no_externals)([h, x])
    first = h @ x[1]
    expected = torch.stack([first, first @ x[2], first @ x[2] @ x[3]])
    torch.testing.assert_close(found, expected)


def test_slices_may_go_backwards() -> None:
    h, x = inputs()
    program = replace(LOOP, steps=(replace(LAST, starts=(0, 32), strides=(0, -16)),))
    (found,) = LoadedProgram(program, no_externals)([h, x])
    torch.testing.assert_close(found, h @ x[2] @ x[1] @ x[0])


def test_a_loop_survives_the_cache() -> None:
    data = encode_program(STACKED)
    assert decode_program(data) == STACKED
    assert STACKED.step_kinds() == ("loop",)


def with_step(**fields: Any) -> Program:
    return replace(LOOP, steps=(replace(LAST, **fields),))


@pytest.mark.parametrize(
    ("id", "bad"),
    [
        ("bad-loop", with_step(trips=4)),
        ("bad-loop", with_step(trips=0)),
        ("bad-loop", with_step(part=1)),
        ("bad-loop", with_step(starts=(0, -16))),
        ("bad-loop", with_step(strides=(0, 32))),
        ("bad-loop", with_step(strides=(8, 16))),
        ("bad-loop", with_step(fed_by=(1, -1))),
        ("bad-loop", with_step(fed_by=(-1, 0), strides=(0, 0))),
        ("bad-loop", with_step(stacked=(True,))),
        ("bad-loop", with_step(reads=(0,))),
        ("bad-scratch", with_step(scratch=8)),
        ("bad-scratch", with_step(scratch=64)),
        ("bad-scratch", replace(LOOP, arena_bytes=0)),
        ("bad-part", replace(LOOP, parts=(replace(PART, parts=(PART,)),))),
    ],
)
def test_programs_that_contradict_themselves(id: str, bad: Program) -> None:
    with pytest.raises(ProgramError) as caught:
        LoadedProgram(bad, no_externals)
    assert caught.value.id == id
