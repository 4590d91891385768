"""Measuring of real programs: library steps need neither MLIR nor a compiler."""

from __future__ import annotations

import pytest
import torch

from magweld.artifact import LibraryStep, Place, Program, Value
from magweld.runtime.errors import ProgramError, TaskFailedError
from magweld.runtime.measuring import (
    TASK,
    agree,
    decode_times,
    encode_measurement,
    example_inputs,
    measure,
)
from magweld.runtime.worker_pool import WorkerPool


def product(*, swapped: bool = False, op: str = "matmul") -> Program:
    """The product of two matrices, or that of the second with the first."""
    values = (
        Value((8, 8), "f32", Place.INPUT, 0),
        Value((8, 8), "f32", Place.INPUT, 1),
        Value((8, 8), "f32", Place.OUTPUT),
    )
    reads = (1, 0) if swapped else (0, 1)
    return Program(values, (LibraryStep(op, reads, (2,)),), (2,), arena_bytes=0)


def test_equal_results_are_timed_and_others_left_out() -> None:
    threads = torch.get_num_threads()
    payload = encode_measurement([product(), product(swapped=True), product()], 1, 0.0)
    try:
        first, other, third = decode_times(measure(payload))
    finally:
        torch.set_num_threads(threads)
    assert other is None
    assert first is not None
    assert third is not None
    assert min(first.seconds, third.seconds) > 0


def test_a_worker_says_what_is_wrong_with_a_program() -> None:
    pool = WorkerPool(1)
    try:
        payload = encode_measurement([product(op="nothing")], 1, 0.0)
        with pytest.raises(TaskFailedError, match="unknown-library-op"):
            pool.run(TASK, payload, 120.0)
        data = pool.run(TASK, encode_measurement([product()], 1, 0.0), 120.0)
        assert len(decode_times(data)) == 1
    finally:
        pool.close()


def test_a_program_that_contradicts_itself() -> None:
    with pytest.raises(ProgramError):
        measure(encode_measurement([product(op="nothing")], 1, 0.0))


def test_example_inputs_are_always_the_same() -> None:
    values = (
        Value((3,), "i64", Place.INPUT, 1),
        Value((2, 2), "f32", Place.INPUT, 0),
        Value((1,), "i1", Place.INPUT, 2),
    )
    program = Program(values, (), (), arena_bytes=0)
    one, two = example_inputs(program), example_inputs(program)
    assert [t.dtype for t in one] == [torch.float32, torch.int64, torch.bool]
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        ([1.0, 2.0], [1.0, 2.001], True),
        ([1.0, 2.0], [1.0, 3.0], False),
        ([1.0, float("nan")], [1.0, float("nan")], True),
        ([1.0, float("nan")], [1.0, 2.0], False),
        ([], [], True),
        ([0.0], [0.0], True),
    ],
)
def test_agree(got: list[float], expected: list[float], equal: bool) -> None:
    assert agree([torch.tensor(got)], [torch.tensor(expected)]) is equal


def test_integers_agree_exactly() -> None:
    assert not agree([torch.tensor([100])], [torch.tensor([101])])
