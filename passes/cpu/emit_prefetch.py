"""Owns the prefetches of what a product reads next: panels, and rows of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Protocol

from magweld.bindings import arith, ir, memref
from magweld.passes.cpu.buffer_roots import root_of
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_index import Index, index_constant
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.register_tile import Piece
from magweld.passes.tiling.first_cache import LINE_BYTES, SETS, WAYS

# Products in each step of a reduction for one prefetch, so that loads come first.
PRODUCTS = 3
# Into the second cache: a panel is more than the first one holds.
LOCALITY = 2
# Into the first cache: what is read as soon as the register tile is done.
NEAREST = 3


class Prefetch(Protocol):
    """What is fetched beside the products of a register tile."""

    def begin(self, cursor: Cursor, loop: int, products: int) -> list[Index]:
        """Emit where the prefetches of a register tile begin.

        Args:
            cursor: Where the tile is.
            loop: The loop over rows.
            products: Vectors that are multiplied in each step of the reduction.
        """

    def emit(self, starts: Sequence[Index], step: Index) -> None:
        """Emit the prefetches of one step of the reduction."""


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
        """See `Prefetch`; the columns are divided among the rows."""
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
        """See `Prefetch`."""
        moved = step.times(self.down)
        for start in starts:
            fetch_line(self.source, start.plus(moved))


@dataclass(frozen=True)
class NextRows:
    """The rows of which the next register tile reads one element after another.

    They are contiguous along the reduction. A line has the elements of some steps, and
    in as many steps each row fetches a line once, a row in each step. Behind the last
    rows there are those of the next tile, or, where a reduction is walked in blocks,
    the first ones of its next block.

    Attributes:
        source: The operand.
        pitch: Elements from one row to the next.
        rows: How many rows there are.
        length: Elements of a row.
    """

    source: FlatBuffer
    pitch: int
    rows: int
    length: int

    def begin(self, cursor: Cursor, loop: int, products: int) -> list[Index]:
        """See `Prefetch`."""
        piece, width = cursor.pieces[loop], _line_width(self.source)
        tile = cursor.index(self.source, dict.fromkeys(cursor.parallel, 0))
        first = tile.shifted(piece.step * self.pitch)
        if self.pitch > self.length and piece.stop == self.rows:
            first = self._next_block(tile, cursor.positions[loop], piece, first)
        return [first.shifted(k * self.pitch) for k in range(0, piece.step, width)]

    def _next_block(
        self, tile: Index, row: Index, piece: Piece, behind: Index
    ) -> Index:
        """Emit where the next rows are, the first ones of a block behind the last."""
        first = tile.plus(row.times(-self.pitch)).shifted(self.length)
        if not piece.is_loop:
            return first
        last = index_constant(piece.stop - piece.step)
        is_last = arith.cmpi(arith.CmpIPredicate.uge, row.emit(), last)
        return Index(arith.select(is_last, first.emit(), behind.emit()))

    def emit(self, starts: Sequence[Index], step: Index) -> None:
        """See `Prefetch`."""
        last = index_constant(_line_width(self.source) - 1)
        row = Index(arith.andi(step.emit(), last))
        moved = step.plus(row.times(self.pitch - 1))
        for start in starts:
            fetch_line(self.source, start.plus(moved))


@dataclass(frozen=True)
class NextDots:
    """The rows that the next block of dot products reads along the reduction.

    Lines come to the second cache in pairs: in one step half of the rows fetch the
    first one of a pair, in the next step the others. Behind the last rows there are
    those of the next tile.

    Attributes:
        source: The operand.
        pitch: Elements from one row to the next.
    """

    source: FlatBuffer
    pitch: int

    def begin(self, cursor: Cursor, loop: int, products: int) -> list[Index]:
        """See `Prefetch`: where the first half of the rows begins."""
        piece = cursor.pieces[loop]
        tile = cursor.index(self.source, dict.fromkeys(cursor.parallel, 0))
        first = tile.shifted(piece.step * self.pitch)
        half = -(-piece.step // 2)
        # The number of rows of a half is told by how many begin there.
        return [first.shifted(k * self.pitch) for k in range(half)]

    def emit(self, starts: Sequence[Index], step: Index) -> None:
        """See `Prefetch`."""
        width = _line_width(self.source)
        second = arith.andi(step.emit(), index_constant(width))
        line = Index(arith.subi(step.emit(), second))
        is_second = Index(arith.divui(second, index_constant(width)))
        moved = line.plus(is_second.times(len(starts) * self.pitch))
        for start in starts:
            fetch_line(self.source, start.plus(moved))


def next_dots(
    nest: LoopNest, cursor: Cursor, operands: Sequence[Operand]
) -> NextDots | None:
    """Return the rows of dot products that are worth fetching ahead, None without any.

    Prefetchers of processors find some of several rows that are read side by side, and
    begin anew with each block of them.

    Args:
        nest: The loops.
        cursor: Over these.
        operands: Of the nest.
    """
    tile = cursor.tile
    if not nest.product or len(nest.reductions) != 1 or not cursor.parallel:
        return None
    (depth,), rows = nest.reductions, cursor.parallel[-1]
    if tile.vector_dim != depth or tile.unroll[depth] != 1:
        return None
    found = (
        NextDots(source, access.strides[rows])
        for source, access in zip(operands, nest.inputs, strict=False)
        if access.strides[depth] == 1
        and access.strides[rows] * access.bits >= LINE_BYTES * 8
        and isinstance(source, FlatBuffer)
        and comes_from_far(source)
    )
    return next(found, None)


def fetch_line(
    source: FlatBuffer, index: Index, locality: int = LOCALITY, *, writes: bool = False
) -> None:
    """Emit the prefetch of the line of an element, by default to the second cache."""
    memref.PrefetchOp(
        source.view,
        [index.emit()],
        isWrite=writes,
        localityHint=locality,
        isDataCache=True,
    )


def _line_width(source: FlatBuffer) -> int:
    """Return how many elements a cache line has."""
    return LINE_BYTES * 8 // int(source.element.width)


def next_rows(
    nest: LoopNest, cursor: Cursor, operands: Sequence[Operand]
) -> NextRows | None:
    """Return the rows of a product that are worth fetching ahead, None without any.

    Their elements are read once for each panel of columns, short pieces of many rows:
    prefetchers of processors do not find these.

    Args:
        nest: The loops.
        cursor: Over these.
        operands: Of the nest.
    """
    tile = cursor.tile
    if not nest.product or len(nest.reductions) != 1 or not cursor.parallel:
        return None
    (depth,), rows = nest.reductions, cursor.parallel[-1]
    if tile.vector_dim not in cursor.parallel[:-1] or tile.unroll[depth] != 1:
        return None
    found = (
        NextRows(source, access.strides[rows], nest.extents[rows], nest.extents[depth])
        for source, access in zip(operands, nest.inputs, strict=False)
        if not access.strides[tile.vector_dim]
        and access.strides[depth] == 1
        and access.strides[rows] * access.bits >= LINE_BYTES * 8
        and isinstance(source, FlatBuffer)
        and comes_from_far(source)
    )
    return next(found, None)


def comes_from_far(source: FlatBuffer) -> bool:
    """Whether a buffer has elements one behind another that the first cache has not."""
    return source.unit == 1 and is_far(source.view)


def is_far(buffer: ir.Value) -> bool:
    """Whether a buffer is part of an argument that the first cache does not hold."""
    root = root_of(buffer)
    if root is None or not isinstance(root.owner, ir.Block):
        return False
    kind = root.type
    elements = prod(kind.shape) if kind.has_static_shape else 0
    return elements * int(kind.element_type.width) > LINE_BYTES * SETS * WAYS * 8


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
