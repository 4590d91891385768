"""Owns which loops of a product are those of its rows, columns and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.passes.gpu.linalg_structure import LoopNest, inputs_of
from magweld.passes.ir.utils import located_error

_MATRIX = 8


@dataclass(frozen=True)
class ProductLoops:
    """The loops of a product of two matrices.

    Attributes:
        row: Of the rows of the result.
        column: Of its columns.
        step: Of the reduction.
        left: Number of the operand that has the rows.
    """

    row: int
    column: int
    step: int
    left: int

    @staticmethod
    def of(op: Any, nest: LoopNest) -> ProductLoops:
        """Return the loops.

        Raises:
            PassError: It is no product of two matrices; located at it.
        """
        long = [n for n in nest.parallel if nest.extents[n] > 1]
        steps = [n for n in nest.reduction if nest.extents[n] > 1]
        if len(long) != 2 or len(steps) != 1 or len(inputs_of(op)) != 2:
            raise located_error(op, "expected a product of two matrices")
        row, column = long
        left = 0 if row in nest.maps[0] else 1
        if column in nest.maps[left] or row in nest.maps[1 - left]:
            raise located_error(op, "expected a product of two matrices")
        return ProductLoops(row, column, steps[0], left)
