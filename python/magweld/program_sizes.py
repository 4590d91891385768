"""Owns a program for sizes of a call, made of one in which primes stand for them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

from magweld.artifact import (
    WORDS,
    ExternalStep,
    LibraryStep,
    Place,
    Program,
    Value,
)
from magweld.diagnostics import UnsupportedError
from magweld.dialects.tile_graph import RuntimeTiles
from magweld.passes.memory.plan_memory import ARENA_ALIGNMENT
from magweld.passes.plan.launch_costs import PARALLEL_BYTES
from magweld.passes.tiling.packing import Buffer, pack
from magweld.runtime.dtypes import torch_dtype


def require_sizes(program: Program, extents: frozenset[int]) -> None:
    """Make sure that a program follows from its stand-ins for any sizes.

    Args:
        program: One that was compiled with stand-ins.
        extents: Those of its graph that depend on sizes, as `one_graph` gives
            them.

    Raises:
        UnsupportedError: `size-dependent`, with what does not.
    """
    for fault in _faults(program, extents):
        raise UnsupportedError(
            "size-dependent",
            fault,
            hint="a program is compiled for each size that comes back",
        )


def _faults(program: Program, extents: frozenset[int]) -> list[str]:
    if program.parts:
        return ["a part of the program is a program of its own"]
    told = {*program.runtime_values}
    found = [
        f"a constant of shape {value.shape} has an extent of the call"
        for number, value in enumerate(program.values)
        if number in told and value.place is Place.CONSTANT
    ]
    # What passes have made of constants may be a multiple of a prime by accident. What
    # torch runs has been compared with what it makes for other primes.
    for number, step in enumerate(program.steps):
        made = _runtime_extents(program, told & {*step.writes})
        alone = made - extents and not told & {*step.reads}
        if alone and not isinstance(step, ExternalStep):
            found.append(f"step {number} has a result of an extent of the call alone")
        if isinstance(step, LibraryStep) and _has_runtime_attribute(program, step):
            found.append(f"step {number}, '{step.op}', has an extent as attribute")
    return found


def _runtime_extents(program: Program, values: Iterable[int]) -> set[int]:
    extents = (extent for number in values for extent in program.values[number].shape)
    return set(filter(program.stand_ins.is_runtime, extents))


def _has_runtime_attribute(program: Program, step: LibraryStep) -> bool:
    numbers = [
        number
        for value in step.attributes.values()
        for number in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return any(
        type(number) is int and program.stand_ins.is_runtime(number)
        for number in numbers
    )


def program_at(program: Program, sizes: Sequence[int]) -> Program:
    """Return a program for sizes of a call; its code is the same.

    Args:
        program: One with stand-ins that `require_sizes` has let pass.
        sizes: What the stand-ins stand for, each at least one.
    """
    stand_ins = program.stand_ins
    values, constants = list(program.values), list(program.constants)
    for number in program.runtime_values:
        shape = tuple(stand_ins.at(n, sizes) for n in values[number].shape)
        values[number] = replace(values[number], shape=shape)
    for runtime in program.runtime:
        extent = stand_ins.at(runtime.extent, sizes)
        tiles = RuntimeTiles(runtime.extent, runtime.tile, runtime.beside)
        step = program.steps[runtime.step]
        moved = sum(_bytes(values[i]) for i in (*step.reads, *step.writes))
        threads = 0 if moved >= PARALLEL_BYTES else 1
        words = struct.pack(f"={WORDS}q", extent, tiles.count(extent), threads)
        constants[values[runtime.words].index] = words
    found = replace(program, values=tuple(values))
    if program.runtime:
        found = replace(found, constants=tuple(constants))
    # One token and a cache of any length: the arena is the same for all.
    return _placed(found) if program.arena_depends_on_sizes else found


def _placed(program: Program) -> Program:
    """Place what lies in the arena, as `plan-memory` does."""
    values = list(program.values)
    roots = list(range(len(values)))
    for number, value in enumerate(values):
        if value.place is Place.VIEW:
            roots[number] = roots[value.index]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    uses = [(*step.reads, *step.writes) for step in program.steps]
    for position, used in enumerate([*uses, program.results]):
        for root in (roots[number] for number in used):
            first.setdefault(root, position)
            last[root] = position
    placed = [n for n, value in enumerate(values) if value.place is Place.ARENA]
    buffers = [
        Buffer(_bytes(values[n]), first.get(n, 0), last.get(n, len(uses)))
        for n in placed
    ]
    packing = pack(buffers, ARENA_ALIGNMENT)
    for number, offset in zip(placed, packing.offsets, strict=True):
        values[number] = replace(values[number], offset=offset)
    return replace(program, values=tuple(values), arena_bytes=packing.size)


def _bytes(value: Value) -> int:
    return math.prod(value.shape) * torch_dtype(value.dtype).itemsize
