"""Owns the prefetches of rows that are copied before the next product reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from magweld.bindings import arith
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_index import Index, index_constant
from magweld.passes.cpu.emit_prefetch import fetch_line, is_far
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.tiling.first_cache import LINE_BYTES

# Lines that a register tile fetches at most: a core waits for about as many at a time.
MOST_LINES = 24


@dataclass(frozen=True)
class NextCopy:
    """The rows that are copied for the next block of a reduction, or the next tile.

    A copy does nothing but wait for what is not there: pieces of many rows that
    prefetchers of processors do not find. While a block is multiplied, every register
    tile fetches some lines of the rows that take the place of its own, others for each
    strip of columns: what meets in a few sets would drive out the rest of a cache if it
    were fetched again and again.

    Attributes:
        source: Where rows are copied from.
        pitch: Elements from one row to the next.
        length: Elements of a row.
        jump: Elements from a row to the one that takes its place.
    """

    source: FlatBuffer
    pitch: int
    length: int
    jump: Index

    def begin(self, cursor: Cursor, loop: int, products: int) -> list[Index]:
        """See `Prefetch`: all is fetched here, beside the first products."""
        strips, rows = cursor.pieces[cursor.tile.vector_dim], cursor.pieces[loop]
        if strips.start:
            return []  # the strips before have fetched all
        width = LINE_BYTES * 8 // int(self.source.element.width)
        count = strips.stop // strips.step
        each = min(ceil(self.length / (width * count)), MOST_LINES // rows.step)
        first = cursor.positions[loop].times(self.pitch).plus(self.jump)
        if strips.is_loop:
            column = cursor.positions[cursor.tile.vector_dim].emit()
            strip = Index(arith.divui(column, index_constant(strips.step)))
            first = first.plus(strip.times(each * width))
        for row, line in product(range(rows.step), range(each)):
            fetch_line(self.source, first.shifted(row * self.pitch + line * width))
        return []

    def emit(self, starts: Sequence[Index], step: Index) -> None:
        """See `Prefetch`."""


def next_copy(source: Operand, nest: LoopNest) -> NextCopy | None:
    """Emit what rows take the place of those that are copied; None for near ones.

    Behind the last block of a reduction there is the first one of the next rows. That
    may be behind the operand's end, which is no error of a prefetch.

    Args:
        source: What is copied, rows that are contiguous along the only reduction.
        nest: The product that reads the copy.
    """
    if not isinstance(source, FlatBuffer) or not is_far(source.view):
        return None
    (depth,) = nest.reductions
    (row,) = (d for d, stride in enumerate(source.strides) if stride and d != depth)
    pitch, length = source.strides[row], nest.extents[depth]
    behind = Index(None, nest.extents[row] * pitch)
    if pitch <= length:
        return NextCopy(source, pitch, length, behind)
    begin = arith.remui(source.start, index_constant(pitch))
    last = arith.cmpi(arith.CmpIPredicate.uge, begin, index_constant(pitch - length))
    rows = arith.subi(behind.emit(), begin)
    jump = arith.select(last, rows, index_constant(length))
    return NextCopy(source, pitch, length, Index(jump))
