"""Owns how Winograd's minimal filtering is written in IR: attributes and transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from magweld.bindings import arith, ir
from magweld.passes.tiling.winograd_forms import Matrix, Row

# On a convolution: results of a tile along each dimension; and, in a kernel, the number
# of the argument that has the transformed weights.
TILE = "magweld.winograd"
WEIGHTS = "magweld.winograd_weights"


def winograd_tile(root: Any) -> int:
    """Return the tile by which an operation is decided to be computed, 0 for none."""
    found = root.attributes.get(TILE)
    return 0 if found is None else int(ir.IntegerAttr(found).value)


def emit_transform(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Emit `matrix X matrixT` for a square X given row by row.

    Args:
        matrix: The matrix.
        values: The elements of X.
    """
    size = len(matrix[0])
    columns = [
        _emit_rows(matrix, [values[row * size + column] for row in range(size)])
        for column in range(size)
    ]
    made: list[ir.Value] = []
    for row in range(len(matrix)):
        made += _emit_rows(matrix, [column[row] for column in columns])
    return made


def _emit_rows(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    return [_emit_sum(row, values) for row in matrix]


def _emit_sum(row: Row, values: Sequence[ir.Value]) -> ir.Value:
    """Emit a sum of multiples; one with a plus sign comes first if there is one."""
    terms = [(c, v) for c, v in zip(row, values, strict=True) if c]
    (factor, value), *rest = sorted(terms, key=lambda term: term[0] < 0)
    total = value if factor == 1 else _emit_multiple(factor, value)
    for factor, value in rest:
        emit: Callable[..., ir.Value] = arith.subf if factor < 0 else arith.addf
        total = emit(total, _emit_multiple(abs(factor), value))
    return total


def _emit_multiple(factor: Fraction, value: ir.Value) -> ir.Value:
    if factor == 1:
        return value
    number = ir.FloatAttr.get(value.type, float(factor))
    return arith.mulf(value, arith.constant(value.type, number))
