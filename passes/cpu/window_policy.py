"""Owns the choice of a register tile for a window over an image; no MLIR here.

Every point of the window is a step of the code, so that neighbours in the image, of a
block of rows and vectors of columns, share what they load. The elements of the weight
are equal in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, prod

from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.product_costs import (
    LOAD_CYCLES,
    OPERAND_SHARE,
    OUTPUT_CYCLES,
    VECTORS_IN_FLIGHT,
    Candidate,
    power_below,
)
from magweld.passes.cpu.register_tile import (
    NONE,
    RegisterTile,
    VectorUnit,
    split_extent,
)

# Points of a window that are written out; longer ones are loops.
MOST_POINTS = 64
# Multiply-adds in one block of code.
MOST_PRODUCTS = 512
# Loads and rearrangements for one vector of an image, by the distance of its elements.
VECTOR_LOADS = {1: 1, 2: 3}
# Bits of a pipe of multiply-adds, of which a core has two (devices.toml).
PIPE_BITS = 256


def window_candidates(
    nest: LoopNest, unit: VectorUnit, lanes: int
) -> Iterator[Candidate]:
    """Yield register tiles that write the window out, for windows of few points.

    Args:
        nest: A nest whose body is `output + input 0 * input 1`.
        unit: The registers.
        lanes: Elements of a vector.
    """
    points = prod(nest.extents[d] for d in nest.reductions)
    if points > MOST_POINTS:
        return
    for columns, number in product(range(len(nest.extents)), (0, 1)):
        image, weight = nest.inputs[number], nest.inputs[1 - number]
        moves = image.strides[columns] in VECTOR_LOADS and not weight.strides[columns]
        long = nest.parallel[columns] and nest.extents[columns] > 1
        if long and moves and _overlaps(nest, image):
            width = min(lanes, power_below(nest.extents[columns]))
            others = [d for d, p in enumerate(nest.parallel) if p and d != columns]
            for rows in (NONE, *others):
                yield _cheapest(nest, unit, (rows, columns), number, width)


def _slots(lanes: int, unit: VectorUnit) -> float:
    """Return what an operation takes of the time of one on a whole register."""
    return max(lanes * 32, PIPE_BITS) / max(unit.bits, PIPE_BITS)


def _overlaps(nest: LoopNest, image: Access) -> bool:
    """Whether neighbours among the results read some elements in common."""
    return any(
        image.strides[p] <= image.strides[d] * (nest.extents[d] - 1)
        and image.strides[d] < image.strides[p] * nest.extents[p]
        for d in nest.reductions
        for p, parallel in enumerate(nest.parallel)
        if parallel and image.strides[p] > 0
    )


def _cheapest(
    nest: LoopNest,
    unit: VectorUnit,
    loops: tuple[int, int],
    number: int,
    lanes: int,
) -> Candidate:
    rows, columns = loops
    points = prod(nest.extents[d] for d in nest.reductions)
    accumulators = unit.registers - unit.registers // OPERAND_SHARE
    most = max(1, min(accumulators, MOST_PRODUCTS // points))
    row_extent = nest.extents[rows] if rows != NONE else 1
    blocks = [
        (r, c)
        for c in range(1, min(most, ceil(nest.extents[columns] / lanes)) + 1)
        for r in range(1, min(row_extent, most // c) + 1)
    ]
    lines = [_lines(nest, nest.inputs[number], rows, n) for n in range(most + 1)]
    candidates = (
        _candidate(nest, unit, loops, number, lanes, block, lines) for block in blocks
    )
    return min(candidates, key=lambda candidate: candidate.cycles)


def _candidate(
    nest: LoopNest,
    unit: VectorUnit,
    loops: tuple[int, int],
    number: int,
    lanes: int,
    block: tuple[int, int],
    lines: list[int],
) -> Candidate:
    rows, columns = loops
    row_extent = nest.extents[rows] if rows != NONE else 1
    points = prod(nest.extents[d] for d in nest.reductions)
    image, weight = nest.inputs[number], nest.inputs[1 - number]
    loads = VECTOR_LOADS[image.strides[columns]]
    own = rows != NONE and weight.strides[rows] != 0
    stride = 1 if nest.outputs[0].strides[columns] == 1 else lanes
    cycles = 0.0
    for r in split_extent(row_extent, block[0], 1):
        for c in split_extent(nest.extents[columns], block[1], lanes):
            steps = (r.stop - r.start) // r.step * ((c.stop - c.start) // c.step)
            slots = _slots(c.lanes, unit)
            # Half as wide ones take one of two pipes, and as long; loads are as many.
            products = max(r.count * c.count * slots, VECTORS_IN_FLIGHT) * points
            fetched = lines[r.count] * c.count * loads
            fetched += points * (r.count if own else 1)
            stored = r.count * c.count * OUTPUT_CYCLES * stride * slots
            cycles += steps * (products + LOAD_CYCLES * fetched + stored)
    outer = [d for d, p in enumerate(nest.parallel) if p and d not in loops]
    unroll = [1 if p else nest.extents[d] for d, p in enumerate(nest.parallel)]
    unroll[columns] = block[1]
    inner = [columns]
    if rows != NONE:
        unroll[rows] = block[0]
        inner = [rows, columns]
    tile = RegisterTile(
        dims=(),
        order=(*outer, *inner, *nest.reductions),
        unroll=tuple(unroll),
        vector_dim=columns,
        lanes=lanes,
    )
    return Candidate(cycles * prod(nest.extents[d] for d in outer), tile)


def _lines(nest: LoopNest, image: Access, rows: int, count: int) -> int:
    """Return how many vectors of an image a column of a block reads, each once."""
    step = image.strides[rows] if rows != NONE else 0
    moves = [
        range(0, nest.extents[d] * image.strides[d], image.strides[d])
        if image.strides[d]
        else range(1)
        for d in nest.reductions
    ]
    return len({i * step + sum(at) for i in range(count) for at in product(*moves)})
