"""Owns the building of products as generic operations with any loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import arith, ir, linalg


def build_contraction(operands: Sequence[Any], init: Any, maps: Sequence[Any]) -> Any:
    """Return `init` plus the sums of products of two operands.

    Args:
        operands: Both.
        init: What is added to.
        maps: Of the operands and of `init`; the last loop is the reduction.
    """
    parallel, reduction = (
        ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")
        for kind in ("parallel", "reduction")
    )
    generic = linalg.GenericOp(
        [init.type],
        operands,
        [init],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        ir.ArrayAttr.get([parallel] * (maps[0].n_dims - 1) + [reduction]),
    )
    element = ir.RankedTensorType(init.type).element_type
    location = ir.Location.current
    block = generic.regions[0].blocks.append(*[element] * 3, arg_locs=[location] * 3)
    with ir.InsertionPoint(block):
        left, right, total = block.arguments
        product = arith.mulf(left, right)
        linalg.YieldOp([arith.addf(total, product)])
    return generic.results[0]


def all_floats(op: Any) -> bool:
    """Whether all operands of a product have one element type, a float."""
    types = [ir.ShapedType(value.type).element_type for value in op.operands]
    return len(set(map(str, types))) == 1 and isinstance(types[0], ir.FloatType)
