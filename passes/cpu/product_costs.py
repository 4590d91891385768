"""Owns what the ways to vectorise a matrix product are compared by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod

from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.register_tile import (
    NONE,
    RegisterTile,
    VectorUnit,
    split_extent,
)
from magweld.passes.tiling.strips import step_cycles

# Part of the registers that operands and addresses need.
OPERAND_SHARE = 4
# Cycles to read and write a vector of the output.
OUTPUT_CYCLES = 2.0
# Part of the registers that the vectors of columns of a block are at most. Measured
# for 512 x 768 x 768: 6x4 blocks of 32 registers are faster than 12x2 ones (Zen 4), 6x2
# of 16 registers than 4x3, whose panels fill the first cache (Zen 3, 41 and 36 GMAC/s).
COLUMN_SHARE = 8


@dataclass(frozen=True)
class Candidate:
    """A register tile with the cycles that it takes."""

    cycles: float
    tile: RegisterTile


def power_below(extent: int) -> int:
    """Return the largest power of two that is not greater."""
    return 1 << (extent.bit_length() - 1)


def points_of(nest: LoopNest, loops: Iterable[int]) -> int:
    """Return how many points some loops of a nest have."""
    return prod(nest.extents[d] for d in loops)


def own_loops(nest: LoopNest, number: int) -> list[int]:
    """Return the loops of the output of a product that move one input alone."""
    own, other = nest.inputs[number], nest.inputs[1 - number]
    return [
        d
        for d, parallel in enumerate(nest.parallel)
        if parallel and own.strides[d] and not other.strides[d]
    ]


def longest_of(nest: LoopNest, loops: Iterable[int]) -> int:
    """Return the longest of some loops, NONE if there is none."""
    return max(loops, key=lambda d: nest.extents[d], default=NONE)


def best_block(
    rows: int, columns: int, lanes: int, unit: VectorUnit
) -> tuple[int, int]:
    """Return rows and vectors of columns of the block that costs the fewest cycles."""
    accumulators = unit.registers - unit.registers // OPERAND_SHARE
    most = unit.registers // COLUMN_SHARE
    blocks = [
        (r, c)
        for c in range(1, min(most, ceil(columns / lanes)) + 1)
        for r in range(1, min(rows, accumulators // c) + 1)
    ]
    return min(
        blocks,
        key=lambda block: (block_cycles(rows, columns, lanes, block, unit), -block[1]),
    )


def block_cycles(
    rows: int, columns: int, lanes: int, block: tuple[int, int], unit: VectorUnit
) -> float:
    """Return the cycles of one step of the reduction for all rows and columns."""
    total = 0.0
    for r in split_extent(rows, block[0], 1):
        for c in split_extent(columns, block[1], lanes):
            steps = (r.stop - r.start) // r.step * ((c.stop - c.start) // c.step)
            total += steps * step_cycles(r.count, c.count, unit.bits)
    return total
