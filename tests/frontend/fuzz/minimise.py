"""Owns cutting a failing program down to what is needed for the failure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from .generate import Block, Program

Fails = Callable[[Program], bool]


def minimise(program: Program, fails: Fails, limit: int = 120) -> Program:
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
    """Yield programs with one thing less."""
    for index in reversed(range(len(program.steps))):
        if len(program.steps) > 1:
            smaller = copy.deepcopy(program)
            del smaller.steps[index]
            yield smaller
    count = len(list(blocks(program.body)))
    for number in range(count):
        size = len(list(blocks(program.body))[number].statements)
        for index in range(size):
            yield from _without(program, number, index)
    for result in ("x", "None"):
        if program.result != result:
            smaller = copy.deepcopy(program)
            smaller.result = result
            yield smaller


def _without(program: Program, number: int, index: int) -> Iterator[Program]:
    smaller = copy.deepcopy(program)
    block = list(blocks(smaller.body))[number]
    inner = block.statements[index].blocks
    del block.statements[index]
    yield smaller
    for position in range(len(inner)):
        smaller = copy.deepcopy(program)
        block = list(blocks(smaller.body))[number]
        replacement = block.statements[index].blocks[position].statements
        block.statements[index : index + 1] = replacement
        yield smaller


def blocks(block: Block) -> Iterator[Block]:
    """Yield a block and all blocks in it."""
    yield block
    for statement in block.statements:
        for inner in statement.blocks:
            yield from blocks(inner)
