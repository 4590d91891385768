"""External steps that native code runs on the addresses of a frame."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor
from torch.profiler import profile

from magweld.artifact import ExternalStep, Place, Program, Value
from magweld.codegen.call_words import BoundCode
from magweld.runtime import whole_calls
from magweld.runtime.native_steps import ResultForm
from magweld.runtime.program import LoadedProgram
from magweld.runtime.whole_calls import WholeCall

FLOATS = 6
_NATIVE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
FORM: ResultForm = ((FLOATS,), (1,), torch.float32)


@dataclass
class Copies:
    """Writes its operand to all results.

    Attributes:
        results: What it makes.
        bound_for: For how many threads native code was asked for.
        ran: The numbers that it was run with.
    """

    results: tuple[ResultForm, ...] = (FORM, FORM)
    bound_for: list[int] = field(default_factory=list)
    ran: list[tuple[int, ...]] = field(default_factory=list)

    def run(self, table: int, ids: tuple[int, ...]) -> None:
        self.ran.append(ids)
        read, *written = ids
        addresses = (ctypes.c_int64 * (max(ids) + 1)).from_address(table)
        for number in written:
            ctypes.memmove(addresses[number], addresses[read], 4 * FLOATS)

    def bound(self, ids: tuple[int, ...], threads: int) -> BoundCode:
        """Return `copy_and_fill` for its numbers."""
        self.bound_for.append(threads)
        words = struct.pack(f"{len(ids)}q", *ids)
        return BoundCode(_address_of(copy_and_fill), words, 2 * FLOATS)


@_NATIVE
def copy_and_fill(table: int, words: int, memory: int) -> None:
    """Copy an operand to two results, and write to all of the memory."""
    read, *written = (ctypes.c_int64 * 3).from_address(words)
    addresses = (ctypes.c_int64 * (max(read, *written) + 1)).from_address(table)
    ctypes.memset(memory, 1, 8 * FLOATS)
    for number in written:
        ctypes.memmove(addresses[number], addresses[read], 4 * FLOATS)


def _address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


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


def shown(results: tuple[int, ...], shape: tuple[int, ...] = (2, 3)) -> Program:
    """Return a program whose step makes two tensors, of which there is a view."""
    values = (*program().values, Value(shape, "f32", Place.VIEW, index=0))
    return Program(values, program().steps, results, arena_bytes=0)


def whole(loaded: LoadedProgram) -> WholeCall | None:
    """Return the function that a call is on the latest frame."""
    return loaded._whole_on(loaded._make_frame())


@pytest.mark.parametrize("results", [(0,), (3,), (2, 0), (2, 3)])
def test_a_call_is_one_function(results: tuple[int, ...]) -> None:
    native = Copies()
    given = {"natives": {"copies": native}, "fresh": {"copies"}}
    loaded = LoadedProgram(shown(results), by_operator, **given)
    kept = []
    for number in range(5):
        x = torch.full((FLOATS,), float(number))
        found = loaded([x])
        shapes = [(2, 3) if one == 3 else (FLOATS,) for one in results]
        assert [tuple(one.shape) for one in found] == shapes
        # The first call asks what its arguments are, and goes step by step.
        assert number == 0 or not any(one._is_view() for one in found)
        kept.append((x, found))
    for x, found in kept:
        assert all(torch.equal(one.flatten(), x) for one in found)
    assert len(native.ran) == 1
    assert native.bound_for == [torch.get_num_threads()]


def test_a_call_is_another_function_for_other_threads() -> None:
    native, threads = Copies(), torch.get_num_threads()
    given = {"natives": {"copies": native}, "fresh": {"copies"}}
    loaded, x = LoadedProgram(program(), by_operator, **given), torch.ones(FLOATS)
    for _ in range(3):
        loaded([x])
    try:
        torch.set_num_threads(threads + 1)
        assert torch.equal(loaded([x])[0], x)
    finally:
        torch.set_num_threads(threads)
    assert native.bound_for == [threads, threads + 1]


def test_steps_run_one_by_one_that_make_much(monkeypatch: pytest.MonkeyPatch) -> None:
    native = Copies()
    given = {"natives": {"copies": native}, "fresh": {"copies"}}
    loaded, x = LoadedProgram(program(), by_operator, **given), torch.ones(FLOATS)
    assert whole(loaded) is not None
    monkeypatch.setattr(whole_calls, "_MOST_BYTES", 64)
    loaded = LoadedProgram(program(), by_operator, **given)
    for _ in range(3):
        assert torch.equal(loaded([x])[0], x)
    assert whole(loaded) is None
    assert len(native.ran) == 3


def test_a_profiler_is_shown_the_steps() -> None:
    native = Copies()
    given = {"natives": {"copies": native}, "fresh": {"copies"}}
    loaded, x = LoadedProgram(shown((3,)), by_operator, **given), torch.ones(FLOATS)
    loaded([x])
    with profile():
        (result,) = loaded([x])
    assert torch.equal(result.flatten(), x)
    assert len(native.ran) == 2


def test_programs_for_sizes_have_functions_of_their_own_on_one_frame() -> None:
    loaded = LoadedProgram(program(), by_operator, fresh={"copies"})
    natives = [Copies() for _ in range(2)]
    given = [{"natives": {"copies": one}, "fresh": {"copies"}} for one in natives]
    sized = [LoadedProgram(program(), by_operator, like=loaded, **one) for one in given]
    for number in range(6):
        x = torch.full((FLOATS,), float(number))
        assert torch.equal(sized[number % 2]([x])[0], x)
    assert [len(one.bound_for) for one in natives] == [1, 1]
    assert [len(one.ran) for one in natives] == [1, 1]
    assert len(loaded._frames._idle[""]) == 1
