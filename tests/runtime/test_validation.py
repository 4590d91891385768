from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from magweld.artifact import (
    ExternalStep,
    KernelStep,
    LibraryStep,
    Place,
    Program,
    Step,
    Value,
)
from magweld.runtime.errors import ProgramError
from magweld.runtime.validation import check_program

SHAPE = (4, 4)
NBYTES = 64


def program(*values: Value, steps: tuple[Step, ...] = (), **fields: Any) -> Program:
    defaults: dict[str, Any] = {"results": (), "arena_bytes": 4 * NBYTES}
    return Program(values, steps, **{**defaults, **fields})


def given(index: int = 0) -> Value:
    return Value(SHAPE, "f32", Place.INPUT, index=index)


def buffer(offset: int) -> Value:
    return Value(SHAPE, "f32", Place.ARENA, offset=offset)


ADOPTED = Value(SHAPE, "f32", Place.ADOPTED)


def kernel(reads: tuple[int, ...], writes: tuple[int, ...]) -> KernelStep:
    return KernelStep("k", reads, writes)


@pytest.mark.parametrize(
    ("id", "bad"),
    [
        ("unknown-dtype", program(Value(SHAPE, "f33", Place.OUTPUT))),
        ("bad-shape", program(Value((4, -1), "f32", Place.ARENA))),
        ("bad-view", program(Value(SHAPE, "f32", Place.VIEW, index=0))),
        ("bad-view", program(Value(SHAPE, "f32", Place.VIEW, index=7))),
        ("bad-view", program(given(), Value((5,), "f32", Place.VIEW, index=0))),
        ("bad-view", program(given(), Value(SHAPE, "i32", Place.VIEW, index=0))),
        ("bad-inputs", program(given(0), given(2))),
        ("bad-inputs", program(given(0), given(0))),
        ("bad-offset", program(buffer(-64))),
        ("bad-offset", program(buffer(3 * NBYTES + 4))),
        ("bad-offset", program(buffer(2))),
        ("bad-constant", program(Value(SHAPE, "f32", Place.CONSTANT, index=0))),
        (
            "bad-constant",
            program(Value(SHAPE, "f32", Place.CONSTANT), constants=(b"short",)),
        ),
        ("unknown-value", program(given(), steps=(kernel((0,), (5,)),))),
        ("unknown-value", program(given(), results=(-1,))),
        ("undefined-value", program(buffer(0), results=(0,))),
        (
            "undefined-value",
            program(buffer(0), buffer(64), steps=(kernel((0,), (1,)),)),
        ),
        ("read-only-value", program(given(), steps=(kernel((), (0,)),))),
        (
            "read-only-value",
            program(
                given(),
                Value((16,), "f32", Place.VIEW, index=0),
                steps=(kernel((), (1,)),),
            ),
        ),
        ("bad-adoption", program(ADOPTED, steps=(kernel((), (0,)),))),
        (
            "bad-adoption",
            program(ADOPTED, steps=(ExternalStep("f", (), (0,)),) * 2),
        ),
        (
            "bad-adoption",
            program(
                ADOPTED,
                Value((16,), "f32", Place.VIEW, index=0),
                steps=(ExternalStep("f", (), (1,)),),
            ),
        ),
        ("undefined-value", program(ADOPTED, results=(0,))),
    ],
)
def test_contradictions_are_found(id: str, bad: Program) -> None:
    with pytest.raises(ProgramError) as caught:
        check_program(bad)
    assert caught.value.id == id


def test_buffers_that_are_alive_together_must_not_overlap() -> None:
    # 1 is read by the second step, which writes 2 over its second half.
    steps = (kernel((0,), (1,)), kernel((1,), (2,)))
    with pytest.raises(ProgramError, match="overlap"):
        check_program(program(given(), buffer(0), buffer(32), steps=steps))
    check_program(program(given(), buffer(0), buffer(64), steps=steps))


def test_buffers_may_take_turns() -> None:
    steps = (kernel((0,), (1,)), kernel((1,), (2,)), kernel((2,), (3,)))
    values = (given(), buffer(0), buffer(64), buffer(0))
    check_program(program(*values, steps=steps))
    # Alive until the end as a result.
    with pytest.raises(ProgramError, match="overlap"):
        check_program(program(*values, steps=steps, results=(1,)))


def test_a_view_keeps_its_root_alive() -> None:
    view = Value((16,), "f32", Place.VIEW, index=1)
    values = (given(), buffer(0), buffer(64), buffer(0), view)
    steps = (kernel((0,), (1,)), kernel((1,), (2,)), kernel((2,), (3,)))
    check_program(program(*values, steps=steps))
    last_reads_view = (*steps, kernel((4,), (2,)))
    with pytest.raises(ProgramError, match="overlap"):
        check_program(program(*values, steps=last_reads_view))


def test_library_writes_are_steps_like_others() -> None:
    good = program(
        given(),
        ADOPTED,
        buffer(0),
        steps=(LibraryStep("matmul", (0, 0), (1,)), kernel((1,), (2,))),
        results=(1,),
    )
    check_program(good)
    with pytest.raises(ProgramError, match="undefined-value"):
        check_program(replace(good, steps=good.steps[::-1]))
