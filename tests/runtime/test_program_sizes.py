"""Programs for all sizes: which are refused, and what one of some sizes has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    KernelStep,
    Place,
    Program,
    StandIns,
    Value,
)
from magweld.diagnostics import UnsupportedError
from magweld.program_sizes import program_at, require_sizes
from magweld.runtime.errors import ProgramError
from magweld.runtime.layout import Layout
from magweld.runtime.program import LoadedProgram
from magweld.runtime.validation import check_program, check_sizes

SIZE = 37
VALUES = (
    Value((5,), "f32", Place.INPUT),
    Value((2 * SIZE, 5), "f32", Place.OUTPUT),
)
PROGRAM = Program(
    VALUES, (KernelStep("rows", (0,), (1,)),), (1,), 0, stand_ins=StandIns((SIZE,))
)


def test_rows_of_a_constant_may_be_as_many_as_the_graph_says() -> None:
    require_sizes(PROGRAM, frozenset({SIZE, 2 * SIZE}))


def test_an_extent_that_the_graph_does_not_have_may_be_no_size() -> None:
    with pytest.raises(UnsupportedError, match="step 0 has a result of an extent"):
        require_sizes(PROGRAM, frozenset({SIZE}))


CACHE = Program(
    values=(
        Value((SIZE, 4), "f32", Place.INPUT),
        Value((7,), "f32", Place.ARENA, offset=64),
        Value((SIZE, 4), "f32", Place.ADOPTED),
        Value((4 * SIZE,), "f32", Place.VIEW, index=0),
    ),
    steps=(KernelStep("row", (), (1,)), ExternalStep("attention", (0, 1), (2,))),
    results=(2,),
    arena_bytes=128,
    stand_ins=StandIns((SIZE,)),
)


def test_the_arena_is_the_same_where_it_holds_no_size() -> None:
    found = program_at(CACHE, (5,))
    assert [value.shape for value in found.values] == [(5, 4), (7,), (5, 4), (20,)]
    assert (found.values[1], found.arena_bytes) == (CACHE.values[1], 128)
    assert found.constants is CACHE.constants


def test_the_arena_is_as_large_as_sizes_say() -> None:
    values = list(CACHE.values)
    values[1] = replace(values[1], shape=(SIZE, 7))
    found = program_at(replace(CACHE, values=tuple(values)), (5,))
    assert found.values[1] == replace(values[1], shape=(5, 7), offset=0)
    assert found.arena_bytes == 192  # 140 bytes, in lines of 64


def test_what_follows_from_no_size_is_checked_once() -> None:
    checked, program = check_program(CACHE), program_at(CACHE, (5,))
    layout, alone = check_sizes(program, checked), Layout(program)
    assert layout.like is checked
    assert layout.signatures == alone.signatures
    assert (layout.roots, layout.aliases) == (alone.roots, alone.aliases)
    assert (layout.inputs, layout.lifetimes) == (alone.inputs, alone.lifetimes)


def test_what_sizes_change_is_checked_for_each() -> None:
    checked, program = check_program(CACHE), program_at(CACHE, (5,))
    view = replace(program.values[3], shape=(19,))
    with pytest.raises(ProgramError, match="elements differ"):
        check_sizes(replace(program, values=(*program.values[:3], view)), checked)
    with pytest.raises(ProgramError, match="outside an arena of 64 bytes"):
        check_sizes(replace(program, arena_bytes=64), checked)
    values = list(CACHE.values)
    values[1] = replace(values[1], shape=(SIZE, 7))
    moving = replace(CACHE, values=tuple(values), arena_bytes=2048)
    found = check_sizes(program_at(moving, (5,)), check_program(moving))
    assert found.like is None


def external_cache(program: Program) -> Program:
    """Return a program whose first step is no kernel either."""
    return replace(program, steps=(ExternalStep("row", (), (1,)), program.steps[1]))


class Attention:
    """Runs the steps of `external_cache`; remembers where the row of the arena was."""

    def __init__(self, added: float) -> None:
        self.added = added
        self.rows: list[int] = []

    def __call__(self, node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        if node == "row":
            return (torch.full((7,), self.added),)
        cache, row = tensors
        self.rows.append(row.data_ptr())
        return (cache + row[0],)


def test_programs_for_sizes_of_others_memory_take_the_same_frames() -> None:
    stood_for = external_cache(CACHE)
    like = LoadedProgram(stood_for, Attention(0.0))
    ran = {size: Attention(float(size)) for size in (5, 6)}
    sized = {
        size: LoadedProgram(program_at(stood_for, (size,)), run, like=like)
        for size, run in ran.items()
    }
    for size in (5, 6, 5, 5, 6):
        x = torch.randn(size, 4)
        (result,) = sized[size]([x])
        assert torch.equal(result, x + size)
    assert len({*ran[5].rows, *ran[6].rows}) == 1
    assert not any(program.has_own_arena for program in sized.values())


@pytest.mark.parametrize("place", [Place.ARENA, Place.OUTPUT])
def test_programs_with_memory_of_their_sizes_have_frames_of_their_own(
    place: Place,
) -> None:
    values = list(external_cache(CACHE).values)
    values[2] = replace(values[2], place=place, offset=128 * (place is Place.ARENA))
    stood_for = replace(external_cache(CACHE), values=tuple(values), arena_bytes=1024)
    like = LoadedProgram(stood_for, Attention(0.0))
    sized = LoadedProgram(program_at(stood_for, (5,)), Attention(1.0), like=like)
    x = torch.randn(5, 4)
    (result,) = sized([x])
    assert torch.equal(result, x + 1)
    assert sized.has_own_arena


def test_views_that_steps_take_have_shapes_of_their_own() -> None:
    base = external_cache(CACHE)
    values = (*base.values, Value((SIZE,), "f32", Place.ADOPTED))
    steps = (*base.steps, ExternalStep("flat", (3,), (4,)))
    stood_for = replace(base, values=values, steps=steps, results=(4,))
    # The view is one of the input.
    like = LoadedProgram(stood_for, lambda node, tensors: ())

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        if node == "flat":
            return (tensors[0][::4].clone(),)
        return Attention(1.0)(node, tensors)

    x = torch.randn(5, 4)
    (result,) = LoadedProgram(program_at(stood_for, (5,)), run, like=like)([x])
    assert torch.equal(result, x[:, 0])
