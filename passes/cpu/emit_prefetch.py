"""Owns the prefetches of what the next panel of a product will be copied from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from magweld.bindings import arith, memref
from magweld.passes.cpu.emit_buffer import FlatBuffer
from magweld.passes.cpu.emit_index import Index, index_constant
from magweld.passes.cpu.register_tile import Piece

LINE_BITS = 512
# Products in each step of a reduction for one prefetch, so that loads come first.
PRODUCTS = 3
# Into the second cache: a panel is more than the first one holds.
LOCALITY = 2


@dataclass(frozen=True)
class Size:
    """Columns of a panel, steps of its reduction, and columns of all panels."""

    columns: int
    depth: int
    all_columns: int


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

    def begin(self, row: Index, piece: Piece, products: int) -> list[Index]:
        """Emit where the prefetches of a row of register tiles begin.

        Args:
            row: The first row of the register tile.
            piece: The rows among which the columns are divided.
            products: Vectors that are multiplied in each step of the reduction.
        """
        tiles = (piece.stop - piece.start) // piece.step
        # In a row of memory one prefetch fetches its neighbours as well.
        width = 1 if self.down == 1 else LINE_BITS // self.source.element.width
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


def emit_next_panel(
    source: FlatBuffer, corner: Index, column: Index, loops: tuple[int, int], size: Size
) -> NextPanel:
    """Emit where the panel after one begins.

    It has the next columns. Behind the last ones there are those of the next tile, or,
    where a reduction is walked in blocks, the first ones of its next block. That may be
    behind the operand's end, which is no error of a prefetch.

    Args:
        source: Where panels are copied from.
        corner: Index of the panel's first element.
        column: The panel's first column.
        loops: The loops of the columns and of the reduction.
        size: Of the panel and the operand.
    """
    along, down = (source.strides[loop] for loop in loops)
    behind = corner.shifted(size.columns * along)
    if down == 1 and along > size.depth:
        first = corner.plus(column.times(-along)).shifted(size.depth)
        end = column.shifted(size.columns).emit()
        is_last = arith.cmpi(
            arith.CmpIPredicate.uge, end, index_constant(size.all_columns)
        )
        behind = Index(arith.select(is_last, first.emit(), behind.emit()))
    return NextPanel(source, behind, along, down, size.columns)
