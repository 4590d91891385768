"""Programs for all sizes: which are refused, and what one of some sizes has."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
