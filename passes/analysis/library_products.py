"""Owns products with any loops as calls of a library: which loops are its rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

Loops = tuple[int, ...]


@dataclass(frozen=True)
class Sides:
    """The loops of a product in the order in which a library has dimensions.

    Attributes:
        batch: Loops that count products, outermost in the result.
        rows: Loops of the rows of the result.
        columns: Those of its columns.
        summed: Loops of the reduction.
        first: Loops of the factor that has the rows, in its order.
        second: Loops of the other one.
        swapped: Whether that is the first operand.
    """

    batch: Loops
    rows: Loops
    columns: Loops
    summed: Loops
    first: Loops
    second: Loops
    swapped: bool

    @property
    def transposed(self) -> tuple[bool, bool]:
        """Whether the factors are stored transposed."""
        first = self.first[-len(self.summed) :] != self.summed
        return first, self.second[-len(self.summed) :] == self.summed

    def groups(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Return, for both factors and the result, dimensions that become one."""
        factors = (
            _sizes(self.batch, self.first, self.rows, self.summed),
            _sizes(self.batch, self.second, self.columns, self.summed),
        )
        if self.transposed[0]:
            factors = (_last_swapped(factors[0]), factors[1])
        if not self.transposed[1]:
            factors = (factors[0], _last_swapped(factors[1]))
        made = [len(self.rows), len(self.columns)]
        result = [len(self.batch), *made] if self.batch else made
        return tuple(_runs(sizes) for sizes in (*factors, result))


def product_sides(left: Loops, right: Loops, result: Loops) -> Sides | None:
    """Return the sides of a product, None where dimensions are in no such order.

    Loops that both factors have are summed up, or count products; of loops that one
    factor has, those in front count products where all others follow in order.

    Args:
        left: Loops of the dimensions of the first operand.
        right: Those of the second one.
        result: Those of the result.
    """
    for swapped, (first, second) in enumerate(((left, right), (right, left))):
        for count in range(len(result) - 1):
            found = _sides(first, second, result, count, bool(swapped))
            if found is not None:
                return found
    return None


def _sides(
    first: Loops, second: Loops, result: Loops, count: int, swapped: bool
) -> Sides | None:
    batch, rest = result[:count], result[count:]
    summed = tuple(loop for loop in first if loop in second and loop not in result)
    rows = tuple(loop for loop in rest if loop in first and loop not in second)
    columns = tuple(loop for loop in rest if loop in second and loop not in first)
    if not (rows and columns and summed) or rest != (*rows, *columns):
        return None
    batched = [factor[:count] == batch for factor in (first, second)]
    if batch and not any(batched):
        return None
    factors = zip((first, second), (rows, columns), batched, strict=True)
    for factor, side, whole in factors:
        own = factor[count:] if batch and whole else factor
        if own not in ((*side, *summed), (*summed, *side)):
            return None
    return Sides(batch, rows, columns, summed, first, second, swapped)


def _sizes(batch: Loops, factor: Loops, side: Loops, summed: Loops) -> list[int]:
    has_batch = len(factor) > len(side) + len(summed)
    own = [len(side), len(summed)]
    return [len(batch), *own] if has_batch else own


def _last_swapped(sizes: Sequence[int]) -> list[int]:
    return [*sizes[:-2], sizes[-1], sizes[-2]]


def _runs(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return consecutive numbers in runs of some lengths."""
    ends = list(itertools.accumulate(sizes))
    begins = (end - size for end, size in zip(ends, sizes, strict=True))
    return tuple(tuple(range(*run)) for run in zip(begins, ends, strict=True))
