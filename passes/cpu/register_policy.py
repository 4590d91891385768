"""Owns the choice of a register tile for a loop nest; knows nothing of MLIR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from magweld.passes.cpu.loop_nest import Access, LoopNest, collapsible_dims
from magweld.passes.cpu.masked_lanes import can_be_masked, masked_width
from magweld.passes.cpu.product_policy import choose_product_tile
from magweld.passes.cpu.register_tile import (
    NONE,
    READ_ALONG,
    RegisterTile,
    VectorUnit,
    split_extent,
)

# Vectors in flight that hide the latency of an addition or multiply-add.
PARALLEL_VECTORS = 4
# Vectors of a row of which the last is a large part.
SHORT_VECTORS = 8
# Vectors that one loop of a body carries.
MOST_ROW_VECTORS = 8
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
            return replace(tile, dims=dims)
    raise AssertionError("scalar code is always possible")


def vector_lanes(nest: LoopNest, unit: VectorUnit) -> int:
    """Return how many of the widest elements fit a register (narrow ones: as f32).

    The indices of rows are scalars: they take no room.
    """
    moving = [
        access.bits
        for access in nest.accesses
        if nest.vector_loops is None
        or any(access.strides[d] for d in nest.vector_loops)
    ]
    widest = max(moving, default=unit.bits)
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


def _product(nest: LoopNest, unit: VectorUnit) -> RegisterTile | None:
    if not nest.product or not nest.reductions:
        return None
    return choose_product_tile(nest, unit, vector_lanes(nest, unit))


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
    if _is_short_row(nest, dim, unit, lanes):
        lanes = masked_width(extent, lanes)
        most = min(PARALLEL_VECTORS, -(-extent // lanes))
        return replace(_tile(nest, dim, lanes, {dim: most}), masked=True)
    if extent < lanes:
        lanes = 1 << (extent.bit_length() - 1)
    turned = None if nest.reductions else _turned_dim(nest, dim, lanes)
    if turned is not None:
        tile = _tile(nest, dim, lanes, {turned: lanes})
        return tile
    if nest.inner_loops:
        # One loop of the body makes the whole row: it finds each index once.
        most = lanes * min(MOST_ROW_VECTORS, unit.registers // 2)
        while 2 * lanes <= min(extent, most):
            lanes *= 2
        return _tile(nest, dim, lanes, {})
    # The constants of math functions fill the registers: the processor overlaps
    # iterations of such bodies better than one long body that spills.
    most = 1 if nest.uses_math else PARALLEL_VECTORS
    most = max(1, min(most, unit.registers // len(nest.accesses)))
    return _tile(nest, dim, lanes, {dim: _vectors(extent, lanes, most)})


def _is_short_row(nest: LoopNest, dim: int, unit: VectorUnit, lanes: int) -> bool:
    """Whether what fills no vector is much of a row, and may be a masked one."""
    extent = nest.extents[dim]
    short = extent % lanes > 0 and extent < lanes * SHORT_VECTORS
    return short and can_be_masked(nest, dim, unit)


def _best_parallel(nest: LoopNest, lanes: int) -> int | None:
    candidates = [
        d
        for d, is_parallel in enumerate(nest.parallel)
        if is_parallel and nest.extents[d] > 1 and nest.can_be_vectors(d)
    ]
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
        turns = turned is not None and access.strides[turned] in READ_ALONG
        total += TURN if turns else _fetch(access, dim)
    return total * waste


def _fetch(access: Access, dim: int) -> float:
    return FETCH.get(access.strides[dim], GATHER)


def _turned_dim(nest: LoopNest, dim: int, lanes: int) -> int | None:
    """Return the parallel loop along which an input is loaded instead of `dim`."""
    for access in nest.inputs:
        if not access.used or access.strides[dim] in FETCH:
            continue
        for other, stride in enumerate(access.strides):
            long = nest.extents[other] >= lanes and nest.extents[dim] >= lanes
            if stride in READ_ALONG and nest.parallel[other] and long:
                return other
    return None


_CHOOSERS: tuple[Chooser, ...] = (
    _without_vector_form,
    _product,
    _reduction_across_lanes,
    _along_parallel,
    _scalar,
)
