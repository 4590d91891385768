"""Owns the check of a convolution's result, and the convolution where that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from magweld.bindings import arith, ir, linalg, memref, scf
from magweld.dialects.tile_graph import INTERIOR, PlaceAttr
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.emit_views import Offset, aligned_buffer, plus
from magweld.passes.cpu.product_costs import power_below
from magweld.passes.cpu.register_tile import ATTRIBUTE, RegisterTile
from magweld.passes.ir.linalg_builder import build_generic

# Loops of a convolution that make up each index of its image.
_LOOPS = ((0,), (4,), (2, 5), (3, 6))
# Rows and lanes of the register tile of windows that are computed as they are.
RARE_ROWS, RARE_LANES = 4, 16


@dataclass(frozen=True)
class Border:
    """Where an index of an image lies in the border of the tile that it is a part of.

    Attributes:
        offset: Index of the tile for the first index of the image.
        low: First index of the tile that is no border.
        size: How many are none from there.
    """

    offset: Offset
    low: int
    size: int


def border_of(op: ir.Operation) -> dict[int, Border] | None:
    """Return the borders around the image of a convolution, by dimension.

    They are named by its attribute `tile_graph.interior`; without one there are none.
    None if the image is a part of another tile than this attribute speaks of.
    """
    if INTERIOR not in op.attributes:
        return {}
    low, sizes, whole = (
        list(ir.DenseI64ArrayAttr(op.attributes[INTERIOR][name]))
        for name in ("low", "sizes", "whole")
    )
    offsets: list[Offset] = [0] * len(low)
    value = op.operands[0]
    while not isinstance(value.owner, ir.Block):
        view = value.owner.opview
        if not isinstance(view, memref.SubViewOp):
            break
        kept = len(view.source.type.shape) == len(low) == len(view.static_offsets)
        if not kept or any(step != 1 for step in view.static_strides):
            return None
        dynamic, moving = ir.ShapedType.get_dynamic_size(), iter(view.offsets)
        for d, known in enumerate(view.static_offsets):
            moved = next(moving) if known == dynamic else known
            offsets[d] = moved if offsets[d] == 0 else plus(offsets[d], moved)
        value = view.source
    if list(value.type.shape) != whole:
        return None
    return {
        d: Border(offsets[d], low[d], sizes[d])
        for d in range(len(low))
        if sizes[d] < whole[d]
    }


def _emit_sum_of_zeros(result: ir.Value, place: PlaceAttr | None) -> ir.Value:
    """Emit the sum of the results, each times zero: NaN unless all are finite."""
    element = result.type.element_type
    zero = ir.FloatAttr.get(element, 0.0)
    total = aligned_buffer((), element, place)
    memref.store(arith.constant(element, zero), total, [])
    maps = [ir.AffineMap.get_identity(4), ir.AffineMap.get(4, 0, [])]

    def body(values: Sequence[ir.Value]) -> list[ir.Value]:
        value, so_far = values
        return [arith.addf(so_far, arith.mulf(value, arith.constant(element, zero)))]

    build_generic([result], [total], maps, body, reduced=range(4))
    return memref.load(total, [])


def _add(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Emit the sum with a product."""
    pixel, weight, so_far = values
    return [arith.addf(so_far, arith.mulf(pixel, weight))]


def _add_inside(
    border: Mapping[int, Border], values: Sequence[ir.Value]
) -> list[ir.Value]:
    """Emit the sum with a product; nothing is added for what is border."""
    *_, so_far = values
    (total,) = _add(values)
    for dimension, around in border.items():
        loops = [linalg.IndexOp(loop).result for loop in _LOOPS[dimension]]
        index = reduce(arith.addi, loops)
        # One comparison: what is before the first one wraps around.
        moved = arith.subi(plus(index, around.offset), index_constant(around.low))
        inside = arith.CmpIPredicate.ult
        is_inside = arith.cmpi(inside, moved, index_constant(around.size))
        total = arith.select(is_inside, total, so_far)
    return [total]


def emit_check(
    op: ir.Operation,
    fill: ir.Operation,
    border: Mapping[int, Border],
    place: PlaceAttr | None = None,
) -> None:
    """Emit a convolution as it is written if its result is not all finite numbers.

    Args:
        op: The convolution, its result computed otherwise before.
        fill: What its result starts with.
        border: What is border of the image, by dimension: nothing is added for it,
            not even an infinite weight times zero.
        place: Where the plan has the sum that tells it.
    """
    result = op.operands[2]
    total = _emit_sum_of_zeros(result, place)
    unordered = arith.cmpf(arith.CmpFPredicate.UNO, total, total)
    branch = scf.IfOp(unordered)
    n, f, h, w, c, i, j = (ir.AffineExpr.get_dim(d) for d in range(7))
    maps = [
        ir.AffineMap.get(7, 0, dims)
        for dims in ([n, c, h + i, w + j], [f, c, i, j], [n, f, h, w])
    ]
    with ir.InsertionPoint(branch.then_block):
        fill.clone()
        window = build_generic(
            list(op.operands)[:2],
            [result],
            maps,
            partial(_add_inside, border),
            reduced=range(4, 7),
        )
        # Little code: it hardly ever runs.
        wide = result.type.shape[-1]
        tile = RegisterTile(
            dims=tuple((loop,) for loop in range(7)),
            order=tuple(range(7)),
            unroll=(1, RARE_ROWS, 1, 1, 1, 1, 1),
            vector_dim=3,
            lanes=min(RARE_LANES, power_below(wide)),
        )
        window.attributes[ATTRIBUTE] = tile.to_attribute()
        scf.YieldOp([])
