"""Owns the reading of indexing maps: expressions as sums of loops, trip counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import ir
from magweld.passes.tiling.regions import LinearIndex

# Stands for the constant term beside loop numbers.
_CONSTANT = -1


def linear_index(expr: Any) -> LinearIndex | None:
    """Return an affine expression as a sum of loops, None where it is none."""
    found = _terms(expr, 1)
    if found is None:
        return None
    merged: dict[int, int] = {}
    for loop, coefficient in found:
        merged[loop] = merged.get(loop, 0) + coefficient
    constant = merged.pop(_CONSTANT, 0)
    return LinearIndex(tuple(sorted((k, v) for k, v in merged.items() if v)), constant)


def loop_extents(
    maps: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Trip counts: a loop that indexes a dimension alone runs over that dimension.

    None if a loop has none or if there is nothing to compute. () for a scalar.
    """
    known: dict[int, int] = {}
    for map_, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(map_.results, shape, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                known[expr.position] = size
    loops = range(maps[0].n_dims)
    if any(known.get(loop, 0) == 0 for loop in loops):
        return None
    return tuple(known[loop] for loop in loops)


def loops_of(map_: Any) -> list[int]:
    """Return the loops that index a dimension alone, in order of the dimensions."""
    return [e.position for e in map_.results if isinstance(e, ir.AffineDimExpr)]


def is_projection(map_: Any) -> bool:
    """Return whether every index is a loop or a constant."""
    simple = (ir.AffineDimExpr, ir.AffineConstantExpr)
    return all(isinstance(expr, simple) for expr in map_.results)


def _terms(expr: Any, factor: int) -> list[tuple[int, int]] | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return [(_CONSTANT, factor * expr.value)]
    if isinstance(expr, ir.AffineDimExpr):
        return [(expr.position, factor)]
    if isinstance(expr, ir.AffineAddExpr):
        add = expr
        left, right = _terms(add.lhs, factor), _terms(add.rhs, factor)
        return None if left is None or right is None else left + right
    if isinstance(expr, ir.AffineMulExpr):
        mul = expr
        if isinstance(mul.rhs, ir.AffineConstantExpr):
            return _terms(mul.lhs, factor * mul.rhs.value)
    return None


def dims_of(expression: Any) -> set[int]:
    """Return the dimensions that an affine expression reads."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineBinaryExpr):
        return dims_of(expression.lhs) | dims_of(expression.rhs)
    return set()
