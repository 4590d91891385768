"""Owns the check of a convolution's result, and the convolution where that fails."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.bindings import arith, ir, memref, scf
from magweld.passes.cpu.product_costs import power_below
from magweld.passes.cpu.register_tile import ATTRIBUTE, RegisterTile
from magweld.passes.linalg_builder import build_generic

# Rows and lanes of the register tile of windows that are computed as they are.
RARE_ROWS, RARE_LANES = 4, 16
# The bits of what borders are made of.
NEGATIVE_ZERO = -(1 << 31)


def _emit_sum_of_zeros(result: ir.Value) -> ir.Value:
    """Emit the sum of the results, each times zero: NaN unless all are finite."""
    element = result.type.element_type
    zero = ir.FloatAttr.get(element, 0.0)
    total = memref.alloc(ir.MemRefType.get([], element), [], [])
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


def _add_unless_border(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Emit the sum with a product; nothing is added for a negative zero."""
    pixel, _, so_far = values
    (total,) = _add(values)
    integer = ir.IntegerType.get_signless(32)
    bits = arith.bitcast(integer, pixel)
    border = arith.constant(integer, ir.IntegerAttr.get(integer, NEGATIVE_ZERO))
    is_border = arith.cmpi(arith.CmpIPredicate.eq, bits, border)
    return [arith.select(is_border, so_far, total)]


def emit_check(op: ir.Operation, fill: ir.Operation, *, has_border: bool) -> None:
    """Emit a convolution as it is written if its result is not all finite numbers.

    Args:
        op: The convolution, its result computed otherwise before.
        fill: What its result starts with.
        has_border: Whether negative zeros of the image are a border around it, which
            adds nothing even where weights are infinite.
    """
    result = op.operands[2]
    total = _emit_sum_of_zeros(result)
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
            _add_unless_border if has_border else _add,
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
