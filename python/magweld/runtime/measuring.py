"""Owns the measuring of programs: equal inputs, equal results, then a race.

It is a task of a worker that may import torch, since library calls go through it; a
program that crashes costs that worker. Programs for a GPU run on the current one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Never

import torch
from torch import Tensor

from magweld.artifact import Place, Program
from magweld.runtime.container import (
    decode_parts,
    decode_program,
    encode_parts,
    encode_program,
)
from magweld.runtime.dtypes import TORCH_DTYPES
from magweld.runtime.gpu.machine import machine_for
from magweld.runtime.machine import Machine
from magweld.runtime.program import LoadedProgram
from magweld.runtime.race import Least, race

TASK = "magweld.runtime.measuring:measure"
# Of the largest element: other orders of additions, on random numbers.
TOLERANCE = 2e-2


def encode_measurement(
    programs: Sequence[Program], threads: int, seconds: float
) -> bytes:
    """Return the payload of `measure`."""
    header = json.dumps({"threads": threads, "seconds": seconds})
    return encode_parts([header.encode(), *map(encode_program, programs)])


def decode_times(data: bytes) -> list[Least | None]:
    """Return what `measure` found of each program, None of one with other results.

    Raises:
        ValueError: The data is not an answer of `measure`.
    """
    return [None if pair is None else Least(*pair) for pair in json.loads(data)]


def measure(payload: bytes) -> bytes:
    """Measure programs of equal inputs against each other.

    Raises:
        ContainerError: The payload is ill-formed.
        ProgramError: A program is.
        DeviceError: There is no GPU for them.
    """
    header, *encoded = decode_parts(payload)
    settings = json.loads(header)
    torch.set_num_threads(settings["threads"])
    programs = [decode_program(p) for p in encoded]
    times = compared(programs, machine_for(programs[0].target), settings["seconds"])
    found = [None if time is None else (time.even, time.odd) for time in times]
    return json.dumps(found).encode()


def compared(
    candidates: Sequence[Program], machine: Machine, seconds: float
) -> list[Least | None]:
    """Measure programs of equal inputs on a machine.

    Args:
        candidates: The programs.
        machine: Where they run.
        seconds: Most time for the race.

    Returns:
        The times of each, None of one whose results are not those of the first.

    Raises:
        ProgramError: A program is ill-formed.
    """
    programs = [
        LoadedProgram(program, _run_external, machine) for program in candidates
    ]
    inputs = [x.to(machine.device) for x in example_inputs(programs[0].program)]
    expected = programs[0](inputs)
    # The first one is what the others are compared with.
    right = [0] + [
        number
        for number, program in enumerate(programs)
        if number and agree(program(inputs), expected)
    ]
    calls = [machine.repeated(partial(programs[i], inputs)) for i in right]
    times = race([call.run for call in calls], seconds)
    found = {
        i: Least(time.even / call.times, time.odd / call.times)
        for i, call, time in zip(right, calls, times, strict=True)
    }
    return [found.get(i) for i in range(len(programs))]


def example_inputs(program: Program) -> list[Tensor]:
    """Return random arguments of a program, always the same; integers are zero."""
    generator = torch.Generator().manual_seed(0)
    values = [v for v in program.values if v.place is Place.INPUT]
    inputs = []
    for value in sorted(values, key=lambda v: v.index):
        dtype = TORCH_DTYPES[value.dtype]
        if dtype.is_floating_point:
            tensor = torch.randn(value.shape, generator=generator).to(dtype)
        else:
            tensor = torch.zeros(value.shape, dtype=dtype)
        inputs.append(tensor)
    return inputs


def agree(got: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """Return whether results are equal but for rounding."""
    return all(_agrees(a, b) for a, b in zip(got, expected, strict=True))


def _agrees(a: Tensor, b: Tensor) -> bool:
    if not a.dtype.is_floating_point or not a.numel():
        return bool(torch.equal(a, b))
    finite = b.isfinite()
    if not torch.equal(finite, a.isfinite()):
        return False
    a, b = a[finite].double(), b[finite].double()
    scale = b.abs().max() if b.numel() else 0.0
    return bool(((a - b).abs() <= TOLERANCE * scale).all())


def _run_external(node: str, tensors: Sequence[Tensor]) -> Never:
    raise NotImplementedError(f"a unit has no operator that torch runs: {node}")
