"""Owns products on tiles that are no whole fragments: what they are padded to.

What lies behind the rows and columns of such a tile is computed and left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from magweld.passes.tiling.matrix_units import (
    BLOCK_THREADS,
    HALVES,
    MOST_SUMS,
    STEP,
    MatrixWork,
    instruction_for,
    matrix_loops,
    share_among_subgroups,
)
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import Interval, OperatorModel
from magweld.targets.device import Device

# Rows of an instruction, and the most columns of one; the fewest.
LINES = 16
_FEW_COLUMNS = 8
# Matrix units of all kinds of devices have equal shares of such a multiple of pieces.
_SHARED = 4
# Most of what is computed, by what is wanted.
_MOST_PADDED = 2
# Bytes of an element of the factors, and of a sum.
_HALF, _SUM = 2, 4


@dataclass(frozen=True)
class PaddedProduct:
    """A product of halves on a tile whose rows or columns are no whole fragments.

    Attributes:
        rows: Rows of the tile.
        columns: Columns of it.
        depth: Iterations of the reduction.
    """

    rows: int
    columns: int
    depth: int

    @cached_property
    def extents(self) -> tuple[int, int]:
        """Rows and columns that are computed: the fewest that matrix units share."""
        least = -(-self.rows // LINES), -(-self.columns // LINES)
        choices = (
            (rows, columns)
            for rows, columns in itertools.product(
                *(range(few, few + _SHARED) for few in least)
            )
            if rows * columns % _SHARED == 0
        )
        rows, columns = min(choices, key=lambda one: (one[0] * one[1], sum(one), one))
        return rows * LINES, columns * LINES

    @property
    def is_padded(self) -> bool:
        """Whether instructions compute the tile, but not as it is."""
        rows, columns = self.extents
        whole = not (self.rows % LINES or self.columns % _FEW_COLUMNS)
        most = min(MOST_SUMS * BLOCK_THREADS, _MOST_PADDED * self.rows * self.columns)
        return not whole and self.depth % STEP == 0 and rows * columns <= most

    def step(self, most: int) -> int:
        """Return how much of the reduction is a step, at most so much or the least."""
        steps = range(STEP, max(most, STEP) + 1, STEP)
        return max(step for step in steps if self.depth % step == 0)

    def step_bytes(self, line: int, most: int) -> int:
        """Return the bytes of a factor of a step.

        Args:
            line: 0 for the factor that has the rows, 1 for that with the columns.
            most: The longest step.
        """
        return self.extents[line] * self.step(most) * _HALF

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums, which threads hand to those of what follows."""
        return math.prod(self.extents) * _SUM


@dataclass(frozen=True)
class PaddedTile:
    """The product of an operator.

    Attributes:
        product: Its extents.
        lines: Of each factor, 0 if it has the rows and 1 if it has the columns.
    """

    product: PaddedProduct
    lines: tuple[int, ...]


def padded_tile(node: OperatorModel, box: Sequence[Interval]) -> PaddedTile | None:
    """Return the padded product that a tile of an operator is, None for other tiles."""
    if node.factors not in HALVES or len(node.reads) != 2:
        return None
    sizes = [math.ceil(interval.size) for interval in box]
    loops = matrix_loops(node, sizes)
    if loops is None:
        return None
    sides, step = loops
    rows, columns = (math.prod(sizes[loop] for loop in side) for side in sides)
    product = PaddedProduct(rows, columns, node.extents[step])
    lines = _lines(node, sides[0])
    if not product.is_padded or set(lines) != {0, 1}:
        return None
    extents = [(rows, columns)[line] for line in lines]
    return PaddedTile(product, lines) if _has_whole_rows(node, extents, step) else None


def _lines(node: OperatorModel, rows: Sequence[int]) -> tuple[int, ...]:
    """Return of each factor whether it has the loops of the columns."""
    return tuple(
        int(not {index.single_loop for index in read.index if index} >= {*rows})
        for read in node.reads
    )


def _has_whole_rows(node: OperatorModel, extents: Sequence[int], step: int) -> bool:
    """Tell whether rows in memory are steps, or whole fragments of rows or columns."""
    last = [read.index[-1] for read in node.reads]
    return all(
        index is not None and (index.single_loop == step or not extent % LINES)
        for index, extent in zip(last, extents, strict=True)
    )


def padded_of(part: OperatorTile) -> PaddedTile | None:
    """Return the padded product of what an operator does for a tile.

    None where a factor is made in the tile: it is not copied.
    """
    if not all(part.outside):
        return None
    if "padded" not in part.known:
        part.known["padded"] = padded_tile(part.model, part.box)
    found: PaddedTile | None = part.known["padded"]
    return found


def padded_work(part: OperatorTile, device: Device) -> MatrixWork | None:
    """Return what matrix instructions do of a padded product, None of others."""
    instruction = instruction_for(part.model, device)
    found = None if instruction is None else padded_of(part)
    if instruction is None or found is None:
        return None
    product = found.product
    rows, columns = product.extents
    high, wide, _ = instruction.shape
    along_rows, along_columns = share_among_subgroups(
        (rows // high, columns // wide),
        min(BLOCK_THREADS, device.threads) // device.warp,
        (high, wide),
    )
    steps = part.points // (product.rows * product.columns)
    operations = 2 * rows * columns * steps
    lines = along_columns * rows + along_rows * columns
    loaded = lines * steps * _HALF + 2 * product.sum_bytes * part.times
    return MatrixWork(operations, operations / (instruction.gflops * 1e9), loaded)
