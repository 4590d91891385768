"""Owns the parts of a grid of tiles: sizes need not divide extents, or know them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# Steps from which what is left of an extent has sizes of tiles between, too: a tile of
# one row reads all weights of a product, as a tile of eight does, and takes a third of
# the time of one of four.
_LEAST_IN_FOUR = 8
_LEAST_IN_FIVE = 32


@dataclass(frozen=True)
class GridLoop:
    """A loop over tiles that all have one size.

    Attributes:
        start: Where the first one begins.
        end: Where the last one ends.
        step: Their size; it divides what is between.
    """

    start: int
    end: int
    step: int


def grid_parts(
    extents: Sequence[int],
    steps: Sequence[int],
    runtime: Collection[int] = (),
    *,
    overlapping: bool = False,
) -> list[tuple[GridLoop, ...]]:
    """Return the parts of a grid, each with one loop for every extent.

    Tiles of a part have one shape. The first part has those of full size; along an
    extent that its step does not divide what is left makes one more range. Parts and
    their tiles are disjoint and cover everything.

    Args:
        extents: What is split.
        steps: Size of the tiles along each; no larger than what they split.
        runtime: Positions of extents that a call tells. They have the parts of
            `runtime_loops`, whose number and steps no extent changes.
        overlapping: Whether all tiles have full size: there is one part, whose loops
            end at multiples of their steps. The last tile of each begins earlier than
            its number says, so that it ends with the extent.
    """
    if overlapping:
        pairs = zip(extents, steps, strict=True)
        return [tuple(GridLoop(0, -(-end // n) * n, n) for end, n in pairs)]
    loops = [
        runtime_loops(extent, step) if position in runtime else _loops(extent, step)
        for position, (extent, step) in enumerate(zip(extents, steps, strict=True))
    ]
    return list(itertools.product(*loops))


def runtime_steps(step: int) -> tuple[int, ...]:
    """Return the sizes of tiles along an extent that a call tells, largest first.

    Each divides the one before, the last is one: together they cover any extent.

    Args:
        step: The largest size, a power of two.
    """
    if step == 1:
        return (1,)
    if step < _LEAST_IN_FOUR:
        return (step, 1)
    power = step.bit_length() - 1
    middle, small = 1 << 2 * power // 3, 1 << power // 3
    if step < _LEAST_IN_FIVE:
        return (step, middle, small, 1)
    return (step, middle, max(4, small), 2, 1)


def runtime_loops(extent: int, step: int) -> list[GridLoop]:
    """Return the loops over the tiles of an extent that a call tells.

    Args:
        extent: What is split, 0 or more. Loops may be empty.
        step: Size of the tiles of the first loop, a power of two.
    """
    ends = [extent - extent % size for size in runtime_steps(step)]
    starts = [0, *ends[:-1]]
    return list(map(GridLoop, starts, ends, runtime_steps(step)))


def _loops(extent: int, step: int) -> list[GridLoop]:
    whole = extent - extent % step
    rest = [GridLoop(whole, extent, extent - whole)] if whole < extent else []
    return [GridLoop(0, whole, step), *rest]
