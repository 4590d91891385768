"""Owns whole numbers of 64 bits as attributes."""

from __future__ import annotations

from collections.abc import Iterable

from magweld.bindings import ir


def i64(value: int) -> ir.IntegerAttr:
    """Return a number in the current context."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def i64s(values: Iterable[int]) -> ir.ArrayAttr:
    """Return an array of numbers in the current context."""
    return ir.ArrayAttr.get([i64(value) for value in values])
