"""Owns the choice of a register tile for a loop nest; knows nothing of MLIR."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod

from magweld.passes.cpu.loop_nest import Access, LoopNest, collapsible_dims
from magweld.passes.cpu.register_tile import (
    NONE,
    RegisterTile,
    VectorUnit,
    split_extent,
)

# Vectors in flight that hide the latency of an addition or multiply-add.
PARALLEL_VECTORS = 4
# Part of the registers that a matrix product's operands and addresses need.
OPERAND_SHARE = 4
# Cycles that a load costs a step of a matrix product although it runs beside the
# multiply-adds: 6x4 blocks of vectors reach 100 GFLOP/s where 12x2 reach 90 (Zen 4).
LOAD_CYCLES = 0.5
# Rows of a matrix product that pay for copying the other operand once.
ROWS_THAT_PAY_PACKING = 24
# Distance between rows of a panel, in elements, from which walking down the rows
# costs more address translations than copying the panel.
FAR_ROWS = 1024
# Instructions to fetch one vector of elements, by their distance; gathering lane
# by lane costs GATHER, turning a block of vectors around TURN.
FETCH = {0: 0.25, 1: 1.0, 2: 3.0}
GATHER = 20.0
TURN = 5.0

Chooser = Callable[[LoopNest, VectorUnit], RegisterTile | None]


def choose_register_tile(
    nest: LoopNest, unit: VectorUnit, keep: int = 0
) -> RegisterTile:
    """Choose how a nest is cut into register tiles.

    Args:
        nest: The nest, one loop for each loop of the operation.
        unit: The registers.
        keep: Number of outer loops that must stay loops of their own.
    """
    dims = collapsible_dims(nest, keep)
    collapsed = nest.collapse(dims)
    for chooser in _CHOOSERS:
        tile = chooser(collapsed, unit)
        if tile is not None:
            return RegisterTile(
                dims,
                tile.order,
                tile.unroll,
                tile.vector_dim,
                tile.lanes,
                tile.packed_input,
            )
    raise AssertionError("scalar code is always possible")


def vector_lanes(nest: LoopNest, unit: VectorUnit) -> int:
    """Return how many of the widest elements fit a register (narrow ones: as f32)."""
    widest = max(access.bits for access in nest.accesses)
    return unit.bits // min(max(widest, 32), 64)


def _ordered(nest: LoopNest, vector_dim: int) -> tuple[int, ...]:
    """Order loops: parallel before reductions, the vectorised one last of its kind."""
    dims = range(len(nest.extents))
    return tuple(sorted(dims, key=lambda d: (not nest.parallel[d], d == vector_dim, d)))


def _tile(
    nest: LoopNest, vector_dim: int, lanes: int, unroll: dict[int, int]
) -> RegisterTile:
    return RegisterTile(
        dims=(),
        order=_ordered(nest, vector_dim),
        unroll=tuple(unroll.get(d, 1) for d in range(len(nest.extents))),
        vector_dim=vector_dim,
        lanes=lanes,
    )


def _vectors(extent: int, lanes: int, most: int) -> int:
    return max(1, min(most, extent // lanes))


def _scalar(nest: LoopNest, unit: VectorUnit) -> RegisterTile:
    return _tile(nest, NONE, 1, {})


def _without_vector_form(nest: LoopNest, unit: VectorUnit) -> RegisterTile | None:
    return _scalar(nest, unit) if nest.scalar_reason or nest.points <= 1 else None


# ---- matrix products --------------------------------------------------------------


def _contraction(nest: LoopNest, unit: VectorUnit) -> RegisterTile | None:
    if not nest.product or len(nest.reductions) == 0:
        return None
    output = nest.outputs[0]
    lanes = vector_lanes(nest, unit)
    for columns, stride in enumerate(output.strides):
        if stride != 1 or not nest.parallel[columns]:
            continue
        for number, panel in enumerate(nest.inputs):
            other = nest.inputs[1 - number]
            if panel.strides[columns] == 0 or other.strides[columns] != 0:
                continue
            return _product_tile(nest, unit, columns, number, lanes)
    return None


def _product_tile(
    nest: LoopNest, unit: VectorUnit, columns: int, panel: int, lanes: int
) -> RegisterTile | None:
    matrix, other = nest.inputs[panel], nest.inputs[1 - panel]
    rows = [
        d
        for d, parallel in enumerate(nest.parallel)
        if parallel and d != columns and matrix.strides[d] == 0 and other.strides[d]
    ]
    row = max(rows, key=lambda d: nest.extents[d], default=NONE)
    row_extent = nest.extents[row] if rows else 1
    packed = _pays_packing(nest, matrix, columns, row_extent)
    if matrix.strides[columns] != 1 and not packed:
        return None
    if nest.extents[columns] < lanes:
        lanes = 1 << (nest.extents[columns].bit_length() - 1)
    tile_rows, tile_columns = _best_block(
        row_extent, nest.extents[columns], lanes, unit.registers
    )
    unroll = {columns: tile_columns}
    if rows:
        unroll[row] = tile_rows
    others = [d for d, p in enumerate(nest.parallel) if p and d not in (row, columns)]
    # A panel of columns stays in the cache while all rows pass by.
    order = (*others, columns, *rows[:0], *([row] if rows else []), *nest.reductions)
    return RegisterTile(
        dims=(),
        order=order,
        unroll=tuple(unroll.get(d, 1) for d in range(len(nest.extents))),
        vector_dim=columns,
        lanes=lanes,
        packed_input=panel if packed else NONE,
    )


def _pays_packing(nest: LoopNest, matrix: Access, columns: int, rows: int) -> bool:
    if rows < ROWS_THAT_PAY_PACKING or len(nest.reductions) != 1:
        return False
    depth = nest.reductions[0]
    far = abs(matrix.strides[depth]) >= FAR_ROWS
    return matrix.strides[columns] != 1 or far


def _best_block(rows: int, columns: int, lanes: int, registers: int) -> tuple[int, int]:
    """Return rows and vectors of the register block that costs the fewest cycles.

    A step of the reduction costs as many cycles as it has multiply-adds, at least
    as many as one of them takes, and something for its loads.
    """

    def cost(block: tuple[int, int]) -> float:
        total = 0.0
        for r in split_extent(rows, block[0], 1):
            for c in split_extent(columns, block[1], lanes):
                steps = (r.stop - r.start) // r.step * ((c.stop - c.start) // c.step)
                loads = r.count + c.count
                products = max(r.count * c.count, PARALLEL_VECTORS)
                cycles = products + LOAD_CYCLES * loads
                total += steps * cycles
        return total

    accumulators = registers - registers // OPERAND_SHARE
    blocks = [
        (r, c)
        for c in range(1, min(4, ceil(columns / lanes)) + 1)
        for r in range(1, min(rows, accumulators // c) + 1)
    ]
    return min(blocks, key=lambda block: (cost(block), -block[1]))


# ---- reductions and pointwise operations -------------------------------------------


def _reduction_across_lanes(nest: LoopNest, unit: VectorUnit) -> RegisterTile | None:
    """Vectorise a contiguous reduction; one partial result per lane."""
    if not nest.reductions or not all(nest.combiners) or nest.uses_index:
        return None
    lanes = vector_lanes(nest, unit)
    best = _best_parallel(nest, lanes)
    used = [access for access in nest.inputs if access.used]
    for dim in reversed(nest.reductions):
        contiguous = all(access.strides[dim] in (0, 1) for access in used)
        if contiguous and nest.extents[dim] >= lanes // 2:
            across = sum(_fetch(access, dim) for access in used)
            if best is not None and _parallel_cost(nest, best, lanes) <= across:
                continue
            most = _vectors(nest.extents[dim], lanes, PARALLEL_VECTORS)
            return _tile(nest, dim, lanes, {dim: most})
    return None


def _along_parallel(nest: LoopNest, unit: VectorUnit) -> RegisterTile | None:
    """Vectorise a parallel loop, turning blocks around where that is cheaper."""
    lanes = vector_lanes(nest, unit)
    dim = _best_parallel(nest, lanes)
    if dim is None:
        return None
    extent = nest.extents[dim]
    if extent < lanes:
        lanes = 1 << (extent.bit_length() - 1)
    turned = None if nest.reductions else _turned_dim(nest, dim, lanes)
    if turned is not None:
        tile = _tile(nest, dim, lanes, {turned: lanes})
        return tile
    # The constants of math functions fill the registers: the processor overlaps
    # iterations of such bodies better than one long body that spills.
    most = 1 if nest.uses_math else PARALLEL_VECTORS
    return _tile(nest, dim, lanes, {dim: _vectors(extent, lanes, most)})


def _best_parallel(nest: LoopNest, lanes: int) -> int | None:
    candidates = [d for d, p in enumerate(nest.parallel) if p and nest.extents[d] > 1]
    scalar = float(len(nest.accesses) * lanes)
    costs = {d: _parallel_cost(nest, d, lanes) for d in candidates}
    good = [d for d in candidates if costs[d] <= scalar * 2]
    return min(good, key=lambda d: (costs[d], -d), default=None)


def _parallel_cost(nest: LoopNest, dim: int, lanes: int) -> float:
    """Return instructions of memory access per full vector of points."""
    extent = nest.extents[dim]
    vectors = sum(p.count for p in split_extent(extent, 1, lanes))
    vectors += max(0, extent // lanes - 1)
    waste = vectors * lanes / extent
    turned = None if nest.reductions else _turned_dim(nest, dim, lanes)
    total = 0.0
    for access in nest.accesses:
        if access in nest.inputs and not access.used:
            continue
        turns = turned is not None and access.strides[turned] == 1
        total += TURN if turns else _fetch(access, dim)
    return total * waste


def _fetch(access: Access, dim: int) -> float:
    return FETCH.get(access.strides[dim], GATHER)


def _turned_dim(nest: LoopNest, dim: int, lanes: int) -> int | None:
    """Return the parallel loop along which an input is contiguous instead of `dim`."""
    for access in nest.inputs:
        if not access.used or access.strides[dim] in FETCH:
            continue
        for other, stride in enumerate(access.strides):
            long = nest.extents[other] >= lanes and nest.extents[dim] >= lanes
            if stride == 1 and nest.parallel[other] and long:
                return other
    return None


_CHOOSERS: tuple[Chooser, ...] = (
    _without_vector_form,
    _contraction,
    _reduction_across_lanes,
    _along_parallel,
    _scalar,
)


def footprint(nest: LoopNest) -> int:
    """Return bytes of the elements that all operands of a nest touch, at most."""
    return sum(
        access.bits
        // 8
        * prod(e for e, s in zip(nest.extents, access.strides, strict=True) if s)
        for access in nest.accesses
    )
