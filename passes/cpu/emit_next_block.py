"""Owns the prefetches of rows that the next tile reads, or copies before it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from magweld.bindings import arith
from magweld.passes.cpu.buffer_roots import root_of
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_index import Index, index_constant
from magweld.passes.cpu.emit_prefetch import fetch_line, is_far
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.register_tile import NONE, RegisterTile
from magweld.passes.tiling.first_cache import LINE_BYTES

# Width of vectors whose products leave room for finding the lines of next rows in every
# step: twelve of 256 bits take six cycles. 256 to 64 channels of 56 x 56 pixels take a
# tenth less without (Zen 3).
ROOMY_BITS = 512
# Strips of columns that read rows so seldom that it pays with any vectors: 960 rows of
# 160 by 7 x 7 pixels take a quarter less with it.
FEW_STRIPS = 3
# Lines that a register tile fetches at most: a core waits for about as many at a time.
MOST_LINES = 24


@dataclass(frozen=True)
class NextBlock:
    """The rows of the next block of a reduction, or of the next tile.

    They are pieces of many rows that prefetchers of processors do not find; what copies
    them does nothing but wait for what is not there. Every register tile fetches some
    lines of the rows that take the place of its own, others for each strip of columns:
    what meets in a few sets would drive out the rest of a cache if it were fetched
    again and again.

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


def has_room(nest: LoopNest, tile: RegisterTile, bits: int) -> bool:
    """Whether steps of a product may find the lines of next rows beside.

    Args:
        nest: The product.
        tile: How it is cut.
        bits: Width of a vector register.
    """
    columns = tile.vector_dim
    if bits >= ROOMY_BITS or columns == NONE:
        return True
    strip = tile.lanes * tile.unroll[columns]
    # What fills no vector may be beside; with 56 pixels fetching takes a twentieth.
    return nest.extents[columns] < FEW_STRIPS * strip + tile.lanes


def next_block(source: Operand, nest: LoopNest) -> NextBlock | None:
    """Emit what rows take the place of those of a product; None for near ones.

    A tile that reads all rows of an operand leaves them in a cache for the next one.
    Behind the last block of a reduction there is the first one of the next rows. That
    may be behind the operand's end, which is no error of a prefetch.

    Args:
        source: Rows that are contiguous along the only reduction.
        nest: The product that reads them, or their copy.
    """
    if not isinstance(source, FlatBuffer) or not is_far(source.view):
        return None
    (depth,) = nest.reductions
    (row,) = (d for d, stride in enumerate(source.strides) if stride and d != depth)
    if not _has_more(source, nest.extents[row] * nest.extents[depth]):
        return None
    pitch, length = source.strides[row], nest.extents[depth]
    behind = Index(None, nest.extents[row] * pitch)
    if pitch <= length:
        return NextBlock(source, pitch, length, behind)
    begin = arith.remui(source.start, index_constant(pitch))
    last = arith.cmpi(arith.CmpIPredicate.uge, begin, index_constant(pitch - length))
    rows = arith.subi(behind.emit(), begin)
    jump = arith.select(last, rows, index_constant(length))
    return NextBlock(source, pitch, length, Index(jump))


def next_block_of(
    nest: LoopNest, tile: RegisterTile, operands: Sequence[Operand]
) -> NextBlock | None:
    """Emit what rows a product in vectors along columns reads next, None without any.

    Args:
        nest: The loops.
        tile: How they are cut.
        operands: Of the nest.
    """
    parallel = [d for d in tile.order if nest.parallel[d]]
    if not nest.product or len(nest.reductions) != 1 or not parallel:
        return None
    (depth,), row = nest.reductions, parallel[-1]
    if tile.vector_dim not in parallel[:-1] or tile.unroll[depth] != 1:
        return None
    found = (
        source
        for source, access in zip(operands, nest.inputs, strict=False)
        if {d for d, stride in enumerate(access.strides) if stride} == {depth, row}
        and access.strides[depth] == 1
        and access.strides[row] * access.bits >= LINE_BYTES * 8
    )
    source = next(found, None)
    return None if source is None else next_block(source, nest)


def _has_more(source: FlatBuffer, elements: int) -> bool:
    """Whether an argument has more than so many elements that a product reads."""
    root = root_of(source.view)
    if root is None or not root.type.has_static_shape:
        return False
    return bool(prod(root.type.shape) > elements)
