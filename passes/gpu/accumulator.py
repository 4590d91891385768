"""Owns the elements of the sum of a product that one lane has, in their order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from magweld.bindings import arith, ir, memref
from magweld.passes.gpu.fragment_product import FragmentProduct


class Accumulator:
    """The slice that a product adds to, by results of its instruction."""

    def __init__(self, product: FragmentProduct) -> None:
        self._product = product

    def load(self, row: int, column: int) -> list[ir.Value]:
        """Load the elements of a lane of a result."""
        return [
            memref.LoadOp(self._product.accumulator, indices).result
            for indices in self._registers(row, column)
        ]

    def store(self, row: int, column: int, values: Sequence[ir.Value]) -> None:
        """Store the elements of a lane of a result."""
        for value, indices in zip(values, self._registers(row, column), strict=True):
            memref.StoreOp(value, self._product.accumulator, indices)

    def _registers(self, row: int, column: int) -> Iterator[list[ir.Value]]:
        """Yield the indices of a lane's elements of a result, in their order."""
        one = self._product.instruction
        first, _ = self._product.places
        parts = (row, *one.rows.registers, column, *one.columns.registers)
        fixed = {0, 1 + len(one.rows.extents)}
        choices = [
            (part,) if i in fixed else range(part) for i, part in enumerate(parts)
        ]
        for numbers in itertools.product(*choices):
            yield [
                arith.ConstantOp(ir.IndexType.get(), number).result
                for number in (*[0] * first, *numbers)
            ]
