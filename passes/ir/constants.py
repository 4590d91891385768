"""Owns the reading of numbers that are known when a graph is compiled."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.passes.ir.cloning import defining_op

_NUMBERS = (ir.BoolAttr, ir.FloatAttr, ir.IntegerAttr)


def constant_number(value: Any) -> float | None:
    """Return the number that a scalar is, None where it is no constant."""
    maker = defining_op(value)
    if maker is None or maker.operation.name != "arith.constant":
        return None
    attribute = maker.operation.attributes["value"]
    return attribute.value if isinstance(attribute, _NUMBERS) else None


def filled_with(value: Any) -> Any | None:
    """Return the scalar that a tensor is filled with, None for other tensors."""
    maker = defining_op(value)
    if maker is None or maker.operation.name != "linalg.fill":
        return None
    return maker.operation.operands[0]
