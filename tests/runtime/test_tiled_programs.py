"""Steps that make a tensor tile by tile: what runs, and what is refused before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.artifact import (
    LibraryStep,
    Place,
    Program,
    TiledStep,
    TileRun,
    Value,
)
from magweld.runtime.container import decode_program, encode_program
from magweld.runtime.errors import ProgramError
from magweld.runtime.program import LoadedProgram

RunExternal = Callable[[str, Sequence[Tensor]], Sequence[Tensor]]


def matmul_part(rows: int) -> Program:
    """Return `(x @ w) @ w` for some rows, the product in the arena."""
    return Program(
        values=(
            Value((rows, 4), "f32", Place.INPUT, index=0),
            Value((4, 4), "f32", Place.INPUT, index=1),
            Value((rows, 4), "f32", Place.ARENA, offset=0),
            Value((rows, 4), "f32", Place.OUTPUT),
        ),
        steps=(
            LibraryStep("matmul", (0, 1), (2,), {}),
            LibraryStep("matmul", (2, 1), (3,), {}),
        ),
        results=(3,),
        arena_bytes=rows * 16,
    )


def run(part: int, row: int) -> TileRun:
    return TileRun(part, (0, 1), ((row, 0), (0, 0)), (row, 0))


# Rows 0 and 1, 2 and 3, then 4 alone; 64 bytes hold what is stored.
TILED = Program(
    values=(
        Value((5, 4), "f32", Place.INPUT, index=0),
        Value((4, 4), "f32", Place.INPUT, index=1),
        Value((5, 4), "f32", Place.ARENA, offset=0),
        Value((5, 4), "f32", Place.OUTPUT),
    ),
    steps=(
        TiledStep((0, 1), (2,), (run(0, 0), run(0, 2), run(1, 4)), scratch=128),
        LibraryStep("matmul", (2, 1), (3,), {}),
    ),
    results=(3,),
    arena_bytes=256,
    parts=(matmul_part(2), matmul_part(1)),
)
STEP = TILED.steps[0]


@pytest.fixture
def operands() -> list[Tensor]:
    return [torch.randn(5, 4), torch.randn(4, 4)]


def test_tiles_make_the_tensor(
    operands: list[Tensor], no_externals: RunExternal
) -> None:
    x, w = operands
    loaded = LoadedProgram(TILED, no_externals)
    for _ in range(2):
        torch.testing.assert_close(loaded([x, w])[0], x @ w @ w @ w)


def test_parts_travel_with_the_program(
    operands: list[Tensor], no_externals: RunExternal
) -> None:
    again = decode_program(encode_program(TILED))
    assert again == TILED
    (first,) = LoadedProgram(again, no_externals)(operands)
    (second,) = LoadedProgram(TILED, no_externals)(operands)
    assert torch.equal(first, second)


def test_parts_of_images_are_copied_and_results_put_in_place(
    no_externals: RunExternal,
) -> None:
    """Blocks of columns and rows, each with what lies around it."""
    attributes = {"strides": [1, 1], "padding": [0, 0], "dilation": [1, 1]}
    part = Program(
        values=(
            Value((1, 2, 4, 5), "f32", Place.INPUT, index=0),
            Value((3, 2, 3, 3), "f32", Place.INPUT, index=1),
            Value((1, 3, 2, 3), "f32", Place.ADOPTED),
        ),
        steps=(LibraryStep("convolution", (0, 1), (2,), attributes),),
        results=(2,),
        arena_bytes=0,
    )
    tiles = tuple(
        TileRun(0, (0, 1), ((0, 0, y, x), (0, 0, 0, 0)), (0, 0, y, x))
        for y in (0, 2)
        for x in (0, 3)
    )
    program = Program(
        values=(
            Value((1, 2, 6, 8), "f32", Place.INPUT, index=0),
            Value((3, 2, 3, 3), "f32", Place.INPUT, index=1),
            Value((1, 3, 4, 6), "f32", Place.OUTPUT),
        ),
        steps=(TiledStep((0, 1), (2,), tiles, scratch=0),),
        results=(2,),
        arena_bytes=192,
        parts=(part,),
    )
    x, w = torch.randn(1, 2, 6, 8), torch.randn(3, 2, 3, 3)
    (found,) = LoadedProgram(program, no_externals)([x, w])
    torch.testing.assert_close(found, torch.conv2d(x, w))


def with_tiles(*tiles: TileRun) -> Program:
    assert isinstance(STEP, TiledStep)
    return replace(TILED, steps=(replace(STEP, tiles=tiles), TILED.steps[1]))


def with_scratch(scratch: int, **fields: Any) -> Program:
    assert isinstance(STEP, TiledStep)
    steps = (replace(STEP, scratch=scratch), TILED.steps[1])
    return replace(TILED, steps=steps, **fields)


ALL = (run(0, 0), run(0, 2), run(1, 4))


@pytest.mark.parametrize(
    ("id", "bad"),
    [
        ("bad-tile", with_tiles(*ALL[:2])),
        ("bad-tile", with_tiles(*ALL, ALL[0])),
        ("bad-tile", with_tiles(*ALL[:2], run(0, 4))),
        ("bad-tile", with_tiles(*ALL[:2], run(2, 4))),
        ("bad-tile", with_tiles(*ALL[:2], replace(ALL[2], operands=(0, 2)))),
        ("bad-tile", with_tiles(*ALL[:2], replace(ALL[2], operands=(0,)))),
        ("bad-tile", with_tiles(*ALL[:2], replace(ALL[2], starts=((5, 0), (0, 0))))),
        ("bad-tile", with_tiles(*ALL[:2], replace(ALL[2], position=(4,)))),
        ("bad-scratch", with_scratch(192)),
        ("bad-scratch", with_scratch(32)),
        ("bad-scratch", with_scratch(64)),
        ("bad-part", replace(TILED, parts=(TILED, matmul_part(1)))),
    ],
)
def test_programs_that_would_touch_other_memory_are_refused(
    id: str, bad: Program, no_externals: RunExternal
) -> None:
    with pytest.raises(ProgramError) as caught:
        LoadedProgram(bad, no_externals)
    assert caught.value.id == id
