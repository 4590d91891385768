"""Owns the building of products as generic operations with any loops."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from magweld.bindings import arith, ir
from magweld.passes.ir.linalg_builder import build_generic


def build_contraction(
    operands: Sequence[Any],
    init: Any,
    maps: Sequence[Any],
    reduced: Collection[int] = (),
) -> Any:
    """Return `init` plus the sums of products of two operands.

    Narrower operands are widened to the type of `init` first.

    Args:
        operands: Both.
        init: What is added to.
        maps: Of the operands and of `init`.
        reduced: The loops of the reduction, none for the last.
    """

    def body(values: Sequence[Any]) -> list[Any]:
        *factors, total = values
        left, right = (
            value if value.type == total.type else arith.extf(total.type, value)
            for value in factors
        )
        return [arith.addf(total, arith.mulf(left, right))]

    reduced = reduced or [maps[0].n_dims - 1]
    return build_generic(operands, [init], maps, body, reduced=reduced).results[0]


def are_floats(op: Any) -> bool:
    """Whether all operands of a product are floats, factors perhaps narrower ones."""
    types = [ir.ShapedType(value.type).element_type for value in op.operands]
    return all(isinstance(type_, ir.FloatType) for type_ in types)
