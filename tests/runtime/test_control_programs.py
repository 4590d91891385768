"""Programs with branches and loops on truth values, whose parts run from Python."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from magweld.artifact import ExternalStep, IfStep, Place, Program, Value, WhileStep
from magweld.runtime.errors import ProgramError
from magweld.runtime.program import LoadedProgram


def tensor(place, index=0, offset=0):
    return Value((4,), "f32", place, index, offset)


def truth(place, index=0):
    return Value((), "i1", place, index)


def part(node):
    """Return a program that makes a tensor from two."""
    values = (tensor(Place.INPUT), tensor(Place.INPUT, 1), tensor(Place.ADOPTED))
    return Program(values, (ExternalStep(node, (0, 1), (2,)),), (2,), 0)


# Carries a tensor on: part 0 or part 1 as a test of the tensor says.
STEP = Program(
    (
        tensor(Place.INPUT),
        tensor(Place.INPUT, 1),
        truth(Place.ADOPTED),
        tensor(Place.OUTPUT),
        truth(Place.ADOPTED),
    ),
    (
        ExternalStep("large", (0,), (2,)),
        IfStep((2, 0, 1), (3,), 0, 1, scratch=0),
        ExternalStep("positive", (3,), (4,)),
    ),
    (3, 4),
    0,
)
LOOP = Program(
    (
        tensor(Place.INPUT),
        tensor(Place.INPUT, 1),
        truth(Place.INPUT, 2),
        tensor(Place.OUTPUT),
    ),
    (WhileStep((2, 0, 1), (3,), 2, scratch=0),),
    (3,),
    128,
    parts=(part("halve"), part("subtract"), STEP),
)


def run_external(node, tensors):
    return [
        {
            "halve": lambda x, y: x / 2,
            "subtract": lambda x, y: x - y,
            "large": lambda x: x.max() > 3,
            "positive": lambda x: x.min() > 0,
        }[node](*tensors)
    ]


def expected(x, y, test):
    while test:
        x = x / 2 if x.max() > 3 else x - y
        test = bool(x.min() > 0)
    return x


@pytest.mark.parametrize("largest", [100.0, 3.0, -1.0])
@pytest.mark.parametrize("first", [True, False])
def test_parts_run_as_truth_values_say(largest, first):
    loaded = LoadedProgram(LOOP, run_external)
    x, y = torch.linspace(0.5, 1.0, 4) * largest, torch.full((4,), 0.25)
    kept = x.clone()
    for _ in range(2):
        (found,) = loaded([x, y, torch.tensor(first)])
        torch.testing.assert_close(found, expected(x, y, first), rtol=0, atol=0)
        assert torch.equal(x, kept)
    assert LOOP.step_kinds() == ("while",)
    assert Program.from_header(LOOP.header(), (), ()) == LOOP


def test_an_error_of_a_part_leaves_the_program_usable():
    def fails(node, tensors):
        if node == "subtract":
            raise ValueError("no")
        return run_external(node, tensors)

    loaded = LoadedProgram(LOOP, fails)
    x, y = torch.full((4,), 5.0), torch.full((4,), 0.25)
    with pytest.raises(ValueError, match="no"):
        loaded([x, y, torch.tensor(True)])
    (found,) = loaded([x, y, torch.tensor(False)])
    assert torch.equal(found, x)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (WhileStep((2, 0, 1), (3,), 3, 0), "not in front of it"),
        (WhileStep((0, 0, 1), (3,), 2, 0), "tests"),
        (WhileStep((2, 0), (3,), 2, 0), "takes"),
        (WhileStep((2, 0, 1), (3,), 0, 0), "makes"),
        (IfStep((2, 0, 1), (3,), 0, 2, 0), "makes"),
    ],
)
def test_what_does_not_fit_is_refused(step, problem):
    with pytest.raises(ProgramError, match=problem):
        LoadedProgram(replace(LOOP, steps=(step,)), run_external)


def test_scratch_is_inside_the_arena():
    with pytest.raises(ProgramError, match="bad-scratch"):
        LoadedProgram(replace(LOOP, arena_bytes=64), run_external)


def test_a_part_runs_only_parts_in_front_of_it():
    first = replace(LOOP, parts=(STEP, *LOOP.parts[:2]))
    with pytest.raises(ProgramError, match="bad-control"):
        LoadedProgram(first, run_external)
