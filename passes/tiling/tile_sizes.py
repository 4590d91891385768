"""Owns which tiles are tried: sizes that divide extents, and some that do not."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

from magweld.dialects.tile_graph.grid import grid_parts, runtime_steps
from magweld.passes.tiling.regions import OperatorModel

# Shorter extents are split by their divisors only, and no size is less than this:
# a loop of its own for what is left pays where there is a cache to be filled.
LEAST_SPLIT, LEAST_SIZE = 32, 8
# Sizes are multiples of the first of these that overshoots the extent by little enough:
# whole vectors, then whole blocks of rows in registers.
MULTIPLES = (16, 4, 1)
OVERSHOOT = 1 / 16
# Divisors within this factor make another size useless.
NEAR = 1.5
# Candidates examined for one group; more divisors than this are thinned out evenly.
MAX_CANDIDATES = 128
# Shapes of tiles in one kernel, each with code of its own.
MOST_SHAPES = 4
# Size of the tiles along an extent that a call tells: calls may be smaller.
MOST_ROWS = 128


@functools.lru_cache(maxsize=4096)
def divisors(extent: int) -> tuple[int, ...]:
    """Return the divisors of `extent` in rising order."""
    small = [d for d in range(1, math.isqrt(extent) + 1) if extent % d == 0]
    return tuple(sorted({*small, *(extent // d for d in small)}))


def largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number that is no more than another one."""
    return max(d for d in divisors(number) if d <= most)


@functools.lru_cache(maxsize=4096)
def tile_sizes(extent: int, *, ragged: bool) -> tuple[int, ...]:
    """Return the sizes to try along an extent, in rising order.

    Args:
        extent: What is split.
        ragged: Whether sizes may leave a smaller tile at the end. They are added where
            divisors are far apart.
    """
    found = divisors(extent)
    if not ragged or extent < LEAST_SPLIT:
        return found
    others = {
        size
        for size in _even_sizes(extent)
        if not any(size / NEAR < divisor < size * NEAR for divisor in found)
    }
    return tuple(sorted({*found, *others}))


def _even_sizes(extent: int) -> Iterator[int]:
    """Sizes for two tiles, four, eight and so on that are about as large."""
    count = 2
    while extent // count >= LEAST_SIZE:
        for multiple in MULTIPLES:
            size = -(-extent // (count * multiple)) * multiple
            if -(-extent // size) * size <= extent * (1 + OVERSHOOT):
                yield size
                break
        count *= 2


def shapes_of_tiles(
    extents: tuple[int, ...], tile: tuple[int, ...], runtime: tuple[int, ...] = ()
) -> int:
    """Return how many shapes the tiles of a grid have.

    Those along an extent that a call tells are taken to be no more than there may be.
    """
    shapes = len(grid_parts(extents, tile, runtime))
    for loop in runtime:
        count = len(runtime_steps(tile[loop]))
        shapes = shapes // count * min(count, MOST_SHAPES)
    return shapes


def root_sizes(root: OperatorModel, *, ragged: bool) -> list[tuple[int, ...]]:
    """Return the sizes to try along each parallel loop of a group's last operator.

    Args:
        root: The operator.
        ragged: Whether sizes need not divide extents.
    """
    ragged = ragged and not root.runtime
    return [
        _runtime_sizes(extent)
        if i in root.runtime
        else (extent,)
        if i in root.unsplit
        else tile_sizes(extent, ragged=ragged)
        for i, extent in enumerate(root.whole_tile)
    ]


def _runtime_sizes(extent: int) -> tuple[int, ...]:
    """Powers of two: any extent is a sum of these."""
    return tuple(1 << i for i in range(min(extent, MOST_ROWS).bit_length()))


def candidate_tiles(sizes: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield tiles, thinned to `MAX_CANDIDATES`; the largest sizes are among them.

    Args:
        sizes: What to try along each parallel loop of the root.
    """
    choices = [list(loop) for loop in sizes]
    while math.prod(len(c) for c in choices) > MAX_CANDIDATES:
        # Inner loops first: they are the ones to be taken whole.
        longest = max(reversed(choices), key=len)
        # Keep both ends, and where there is nothing else the whole extent.
        del longest[slice(1, -1, 2) if len(longest) > 2 else slice(0, 1)]
    yield from itertools.product(*choices)
