"""Owns the choice of a register tile for a matrix product; knows nothing of MLIR.

Every way to vectorise a product is given its cycles by the same small model, and the
cheapest is taken. The columns of a block are vectors of one operand, the panel; its
rows are single elements of the other operand, equal in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, gcd, log2, prod

from magweld.passes.analysis.first_cache import LINE_BYTES, SETS, WAYS
from magweld.passes.analysis.vectors import TURN_CYCLES, copy_cycles
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
from magweld.passes.cpu.window_policy import window_candidates

# Part of the registers that the vectors of columns of a block are at most. Measured
# for 512 x 768 x 768: 6x4 blocks of 32 registers are faster than 12x2 ones (Zen 4), 6x2
# of 16 registers than 4x3, whose panels fill the first cache (Zen 3, 41 and 36 GMAC/s).
COLUMN_SHARE = 8
# Distance between rows of a panel, in elements, from which walking down the rows
# costs more address translations than copying the panel, and what it costs then.
FAR_ROWS, FAR_CYCLES = 1024, 0.6
# Cycles to bring an element of a panel back into the first cache for each row of blocks
# where the panel's rows meet in a few sets (2.6 for a line; Zen 3).
COLLISION_CYCLES = 0.15


def choose_product_tile(
    nest: LoopNest, unit: VectorUnit, lanes: int
) -> RegisterTile | None:
    """Return the cheapest register tile of a product, None if there is none.

    Args:
        nest: A nest whose body is `output + input 0 * input 1`.
        unit: The registers.
        lanes: Elements of a vector.
    """
    best = _cheapest(nest, unit, lanes)
    return best.tile if best else None


def product_cycles(nest: LoopNest, unit: VectorUnit) -> float | None:
    """Return the cycles of a product of f32, None if there is no tile."""
    best = _cheapest(nest, unit, unit.bits // 32)
    return best.cycles if best else None


def _cheapest(nest: LoopNest, unit: VectorUnit, lanes: int) -> Candidate | None:
    candidates = [
        *_along_columns(nest, unit, lanes),
        *_along_depth(nest, unit, lanes),
        *window_candidates(nest, unit, lanes),
    ]
    return min(candidates, key=lambda candidate: candidate.cycles, default=None)


def _along_columns(nest: LoopNest, unit: VectorUnit, lanes: int) -> Iterator[Candidate]:
    """Yield tiles whose vectors run along a loop of the output."""
    for columns, parallel in enumerate(nest.parallel):
        for number, panel in enumerate(nest.inputs):
            other = nest.inputs[1 - number]
            moves = panel.strides[columns] != 0 and other.strides[columns] == 0
            if not parallel or not moves or nest.extents[columns] < 2:
                continue
            width = min(lanes, power_below(nest.extents[columns]))
            for packed in (False, True):
                if packed or panel.strides[columns] == 1:
                    yield _column_candidate(nest, unit, columns, number, width, packed)


def _column_candidate(
    nest: LoopNest,
    unit: VectorUnit,
    columns: int,
    number: int,
    lanes: int,
    packed: bool,
) -> Candidate:
    panel, other = nest.inputs[number], nest.inputs[1 - number]
    rows = [
        d
        for d, parallel in enumerate(nest.parallel)
        if parallel and d != columns and panel.strides[d] == 0 and other.strides[d]
    ]
    row = max(rows, key=lambda d: nest.extents[d], default=NONE)
    row_extent = nest.extents[row] if rows else 1
    column_extent = nest.extents[columns]
    block = _best_block(row_extent, column_extent, lanes, unit)
    outer = [
        d for d, p in enumerate(nest.parallel) if p and d != columns and d not in rows
    ]
    depth = _extent(nest, nest.reductions)
    blocks = _extent(nest, outer) * _extent(nest, [d for d in rows if d != row])
    # Reading and writing the output, lane by lane where it is not contiguous.
    contiguous = nest.outputs[0].strides[columns] == 1
    access = OUTPUT_CYCLES * (1 if contiguous else lanes)

    def cycles_of(extent: int) -> float:
        products = depth * _block_cycles(row_extent, extent, lanes, block)
        return blocks * (products + row_extent * ceil(extent / lanes) * access)

    cycles, rest = cycles_of(column_extent), None
    dots = _rest_dots(nest, unit, (row, columns), lanes, other) if packed else None
    if dots is not None:
        whole = cycles_of(column_extent - column_extent % lanes)
        if whole + blocks * dots.cycles < cycles:
            cycles, rest = whole + blocks * dots.cycles, dots.tile
    elements = _extent(nest, outer) * depth * column_extent
    far = any(abs(panel.strides[d]) >= FAR_ROWS for d in nest.reductions)
    if packed:
        turned = panel.strides[columns] != 1
        cycles += elements * (TURN_CYCLES if turned else copy_cycles(unit.bits))
    elif far:
        cycles += elements * FAR_CYCLES
    elif _collides(nest, panel, block[1] * lanes):
        cycles += elements * COLLISION_CYCLES * ceil(row_extent / block[0])
    unroll = dict.fromkeys(range(len(nest.extents)), 1)
    unroll[columns] = block[1]
    if rows:
        unroll[row] = block[0]
    # A panel of columns stays in the cache while all rows pass by.
    inner = [d for d in rows if d != row] + ([row] if rows else [])
    order = (*outer, columns, *inner, *nest.reductions)
    tile = RegisterTile(
        dims=(),
        order=order,
        unroll=tuple(unroll.values()),
        vector_dim=columns,
        lanes=lanes,
        packed_input=number if packed else NONE,
        rest=replace(rest, order=order) if rest is not None else None,
    )
    return Candidate(cycles, tile)


def _rest_dots(
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


def _collides(nest: LoopNest, panel: Access, columns: int) -> bool:
    """Whether the rows of a panel in its place evict each other, and copied do not."""
    if len(nest.reductions) != 1:
        return False
    (depth,) = nest.reductions
    line = LINE_BYTES * 8
    pitch, rest = divmod(abs(panel.strides[depth]) * panel.bits, line)
    lines = ceil(columns * panel.bits / line)
    if nest.extents[depth] * lines > SETS * WAYS or rest or not pitch:
        return False
    return nest.extents[depth] > SETS // gcd(pitch, SETS) * WAYS


def _along_depth(nest: LoopNest, unit: VectorUnit, lanes: int) -> Iterator[Candidate]:
    """Yield tiles whose vectors run along the reduction: blocks of dot products."""
    for depth in nest.reductions:
        contiguous = all(access.strides[depth] == 1 for access in nest.inputs)
        if not contiguous or nest.extents[depth] < lanes // 2:
            continue
        loops = (_longest(nest, 0), _longest(nest, 1))
        rows, columns = (nest.extents[d] if d != NONE else 1 for d in loops)
        dots = _dots(nest, unit, loops, (rows, columns), depth, lanes)
        parallel = [d for d, p in enumerate(nest.parallel) if p]
        blocks = _extent(nest, parallel) // (rows * columns)
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
    block = _best_block(*extents, 1, unit)
    unroll = dict.fromkeys(range(len(nest.extents)), 1)
    for loop, count in zip(loops, block, strict=True):
        if loop != NONE:
            unroll[loop] = count
    steps = _extent(nest, nest.reductions) / lanes
    cycles = steps * _block_cycles(*extents, 1, block)
    # A tree over the lanes of every result: two shuffles and a sum each level. What is
    # left of the reduction has trees of its own.
    trees = 1 + (nest.extents[depth] % lanes).bit_count()
    cycles += trees * prod(extents) * 3 * log2(lanes)
    return Candidate(cycles, RegisterTile((), (), tuple(unroll.values()), depth, lanes))


def _longest(nest: LoopNest, number: int) -> int:
    """Return the longest loop of the output that moves one input alone, or NONE."""
    own, other = nest.inputs[number], nest.inputs[1 - number]
    loops = [
        d
        for d, parallel in enumerate(nest.parallel)
        if parallel and own.strides[d] and not other.strides[d]
    ]
    return max(loops, key=lambda d: nest.extents[d], default=NONE)


def _extent(nest: LoopNest, loops: list[int] | tuple[int, ...]) -> int:
    return prod(nest.extents[d] for d in loops)


def _best_block(
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
        key=lambda block: (_block_cycles(rows, columns, lanes, block), -block[1]),
    )


def _block_cycles(rows: int, columns: int, lanes: int, block: tuple[int, int]) -> float:
    """Return the cycles of one step of the reduction for all rows and columns.

    A block costs as many cycles as it has multiply-adds, at least as many as one of
    them takes, and something for its loads.
    """
    total = 0.0
    for r in split_extent(rows, block[0], 1):
        for c in split_extent(columns, block[1], lanes):
            steps = (r.stop - r.start) // r.step * ((c.stop - c.start) // c.step)
            products = max(r.count * c.count, VECTORS_IN_FLIGHT)
            total += steps * (products + LOAD_CYCLES * (r.count + c.count))
    return total
