"""Owns cutting a failing program down to what is needed for the failure."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from itertools import pairwise

from .program import Block, Program, Step

Fails = Callable[[Program], bool]


def minimise(program: Program, fails: Fails, limit: int = 300) -> Program:
    """Return a smaller program that still fails.

    Args:
        program: A program that fails.
        fails: Tells whether a program fails.
        limit: Largest number of programs to try.
    """
    best, tries, changed = program, 0, True
    while changed and tries < limit:
        changed = False
        for smaller in candidates(best):
            tries += 1
            if tries >= limit:
                break
            if fails(smaller):
                best, changed = smaller, True
                break
    return best


def candidates(program: Program) -> Iterator[Program]:
    """Yield programs with one thing less, all of which Python compiles."""
    for smaller in _smaller(program):
        if smaller.is_valid():
            yield smaller


def _smaller(program: Program) -> Iterator[Program]:
    for start, end in _runs(len(program.steps)):
        if end - start < len(program.steps):
            steps = program.steps[:start] + program.steps[end:]
            yield dataclasses.replace(program, steps=steps)
    called = {step.function for step in program.steps}
    for index, function in enumerate(program.functions):
        if function.name not in called:
            smaller = copy.deepcopy(program)
            del smaller.functions[index]
            yield smaller
    yield from _simpler_calls(program)
    for number, block in enumerate(blocks(program)):
        for start, end in _runs(len(block.statements)):
            smaller = copy.deepcopy(program)
            del list(blocks(smaller))[number].statements[start:end]
            yield smaller
    for number, block in enumerate(blocks(program)):
        for index in range(len(block.statements)):
            yield from _unwrapped(program, number, index)
    yield from _simpler_results(program)


def _simpler_calls(program: Program) -> Iterator[Program]:
    if program.dynamic != "auto":
        yield dataclasses.replace(program, dynamic="auto")
    for index, step in enumerate(program.steps):
        for simpler in _simpler_steps(step):
            steps = list(program.steps)
            steps[index] = simpler
            yield dataclasses.replace(program, steps=steps)


def _simpler_steps(step: Step) -> Iterator[Step]:
    if step.around:
        yield dataclasses.replace(step, around="")
    if step.threads:
        yield dataclasses.replace(step, threads=0)
    for change in range(len(step.changes)):
        changes = step.changes[:change] + step.changes[change + 1 :]
        yield dataclasses.replace(step, changes=changes)


def _simpler_results(program: Program) -> Iterator[Program]:
    for index, function in enumerate(program.functions):
        for result in ("x", "None"):
            if function.result not in ("x", "None"):
                smaller = copy.deepcopy(program)
                smaller.functions[index].result = result
                yield smaller


def _runs(count: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of runs of things to leave out, long runs and late ones first."""
    size = count
    while size:
        for end in range(count, 0, -size):
            yield max(end - size, 0), end
        size //= 2


def _unwrapped(program: Program, number: int, index: int) -> Iterator[Program]:
    """Yield it without what is around a block, and without an arm of a statement.

    Args:
        program: The program.
        number: Number of the block.
        index: Number of the statement in it.
    """

    def copied() -> tuple[Program, Block]:
        smaller = copy.deepcopy(program)
        return smaller, list(blocks(smaller))[number]

    statement = list(blocks(program))[number].statements[index]
    for position in range(len(statement.blocks)):
        smaller, block = copied()
        inner = block.statements[index].blocks[position].statements
        block.statements[index : index + 1] = inner
        yield smaller
    for first, (line, part) in enumerate(pairwise(statement.parts)):
        # An arm goes with its line, as in `else:`; others may keep loops from ending.
        if isinstance(part, Block) and str(line).endswith(":"):
            smaller, block = copied()
            del block.statements[index].parts[first : first + 2]
            yield smaller


def blocks(program: Program) -> Iterator[Block]:
    """Yield all blocks of a program."""
    for function in program.functions:
        yield from _blocks(function.body)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for statement in block.statements:
        for inner in statement.blocks:
            yield from _blocks(inner)
