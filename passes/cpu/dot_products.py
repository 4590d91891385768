"""Owns matrix products whose vectors run along the reduction; knows nothing of MLIR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log2, prod

from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.product_costs import (
    Candidate,
    best_block,
    block_cycles,
    longest_of,
    own_loops,
    points_of,
)
from magweld.passes.cpu.register_tile import NONE, RegisterTile, VectorUnit
from magweld.passes.tiling.vectors import TURN_CYCLES


def dot_candidates(nest: LoopNest, unit: VectorUnit, lanes: int) -> Iterator[Candidate]:
    """Yield tiles whose vectors run along the reduction: blocks of dot products."""
    for depth in nest.reductions:
        contiguous = all(access.strides[depth] == 1 for access in nest.inputs)
        if not contiguous or nest.extents[depth] < lanes // 2:
            continue
        row, column = (longest_of(nest, own_loops(nest, n)) for n in (0, 1))
        loops = (row, column)
        rows, columns = (nest.extents[d] if d != NONE else 1 for d in loops)
        dots = _dots(nest, unit, loops, (rows, columns), depth, lanes)
        parallel = [d for d, p in enumerate(nest.parallel) if p]
        blocks = points_of(nest, parallel) // (rows * columns)
        others = tuple(d for d in nest.reductions if d != depth)
        tile = replace(dots.tile, order=(*parallel, *others, depth))
        yield Candidate(blocks * dots.cycles, tile)


def _dots(
    nest: LoopNest,
    unit: VectorUnit,
    loops: tuple[int, int],
    extents: tuple[int, int],
    depth: int,
    lanes: int,
) -> Candidate:
    """Return blocks of dot products along a loop, without an order of the loops.

    Args:
        nest: A product.
        unit: The registers.
        loops: The rows and the columns; NONE for one of either.
        extents: How many rows and columns there are.
        depth: The loop along which vectors run.
        lanes: Elements of a vector.
    """
    block = best_block(*extents, 1, unit)
    unroll = dict.fromkeys(range(len(nest.extents)), 1)
    for loop, count in zip(loops, block, strict=True):
        if loop != NONE:
            unroll[loop] = count
    steps = points_of(nest, nest.reductions) / lanes
    cycles = steps * block_cycles(*extents, 1, block, unit)
    # A tree over the lanes of every result: two shuffles and a sum each level. What is
    # left of the reduction has trees of its own.
    trees = 1 + (nest.extents[depth] % lanes).bit_count()
    cycles += trees * prod(extents) * 3 * log2(lanes)
    return Candidate(cycles, RegisterTile((), (), tuple(unroll.values()), depth, lanes))


def rest_dots(
    nest: LoopNest, unit: VectorUnit, loops: tuple[int, int], lanes: int, other: Access
) -> Candidate | None:
    """Return dot products for the columns that fill no vector, None if there are none.

    Their panel is copied so that it is contiguous along the reduction.

    Args:
        nest: A product.
        unit: The registers.
        loops: The rows, or NONE, and the columns.
        lanes: Elements of a vector.
        other: The operand that is not a panel.
    """
    row, columns = loops
    rest = nest.extents[columns] % lanes
    if not rest or len(nest.reductions) != 1:
        return None
    (depth,) = nest.reductions
    if other.strides[depth] != 1 or nest.extents[depth] < lanes:
        return None
    rows = nest.extents[row] if row != NONE else 1
    dots = _dots(nest, unit, loops, (rows, rest), depth, lanes)
    turned = rest * nest.extents[depth] * TURN_CYCLES
    return replace(dots, cycles=dots.cycles + turned)
