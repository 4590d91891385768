"""Owns the prefetches of what the next panel of a product will be copied from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from magweld.bindings import arith, memref
from magweld.passes.cpu.emit_buffer import FlatBuffer
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_index import Index, index_constant
from magweld.passes.tiling.first_cache import LINE_BYTES

# Products in each step of a reduction for one prefetch, so that loads come first.
PRODUCTS = 3
# Into the second cache: a panel is more than the first one holds.
LOCALITY = 2


@dataclass(frozen=True)
class NextPanel:
    """What the panel after this one is copied from, fetched while this is multiplied.

    Every row of register tiles fetches some of the columns, so that all are there when
    the last row is done.

    Attributes:
        source: Where panels are copied from.
        corner: Index of the first element of the next panel.
        along: Elements from one column to the next.
        down: Elements from one step of the reduction to the next.
        columns: How many columns a panel has.
    """

    source: FlatBuffer
    corner: Index
    along: int
    down: int
    columns: int

    def begin(self, cursor: Cursor, loop: int, products: int) -> list[Index]:
        """Emit where the prefetches of a row of register tiles begin.

        Args:
            cursor: Where the row is.
            loop: The loop over rows, among which the columns are divided.
            products: Vectors that are multiplied in each step of the reduction.
        """
        row, piece = cursor.positions[loop], cursor.pieces[loop]
        tiles = (piece.stop - piece.start) // piece.step
        # In a row of memory one prefetch fetches its neighbours as well.
        row_wise = self.down == self.source.unit
        width = 1 if row_wise else LINE_BYTES * 8 // self.source.element.width
        wanted = ceil(self.columns / width / tiles)
        number = min(wanted, products // PRODUCTS)
        turn = arith.divui(row.shifted(-piece.start).emit(), index_constant(piece.step))
        column = arith.muli(turn, index_constant(number * width))
        last = index_constant(max(0, self.columns - number * width))
        first = Index(arith.minui(column, last))
        return [
            self.corner.plus(first.shifted(k * width).times(self.along))
            for k in range(number)
        ]

    def emit(self, starts: Sequence[Index], step: Index) -> None:
        """Emit the prefetches of one step of the reduction."""
        moved = step.times(self.down)
        for start in starts:
            memref.PrefetchOp(
                self.source.view,
                [start.plus(moved).emit()],
                isWrite=False,
                localityHint=LOCALITY,
                isDataCache=True,
            )


def emit_next_panel(source: FlatBuffer, corner: Index, cursor: Cursor) -> NextPanel:
    """Emit where the panel after one begins.

    It has the next columns. Behind the last ones there are those of the next tile, or,
    where a reduction is walked in blocks, the first ones of its next block. That may be
    behind the operand's end, which is no error of a prefetch.

    Args:
        source: Where panels are copied from.
        corner: Index of the panel's first element.
        cursor: Where the panel is, in a nest with a single reduction.
    """
    nest, loop = cursor.nest, cursor.tile.vector_dim
    (reduction,) = nest.reductions
    along, down = source.strides[loop], source.strides[reduction]
    column, columns = cursor.positions[loop], cursor.pieces[loop].step
    behind = corner.shifted(columns * along)
    length = nest.extents[reduction] * source.unit
    if down == source.unit and along > length:
        first = corner.plus(column.times(-along)).shifted(length)
        end = column.shifted(columns).emit()
        all_columns = index_constant(nest.extents[loop])
        is_last = arith.cmpi(arith.CmpIPredicate.uge, end, all_columns)
        behind = Index(arith.select(is_last, first.emit(), behind.emit()))
    return NextPanel(source, behind, along, down, columns)
