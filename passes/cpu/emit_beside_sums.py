"""Owns prefetches of what is read and written behind the sums of a register tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from magweld.passes.cpu.emit_buffer import FlatBuffer
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_prefetch import NEAREST, comes_from_far, fetch_line

# Steps of a reduction for each buffer that is fetched, so that products come first.
STEPS = 16


def fetch_beside_sums(
    cursor: Cursor,
    points: Sequence[Mapping[int, int]],
    reads: Sequence[FlatBuffer],
    writes: Sequence[FlatBuffer],
) -> None:
    """Fetch what is far away while a register tile is summed up.

    Rows of an operand are far apart, pieces of a line or two in pages of their own:
    prefetchers of processors do not find them. All that is read would be waited for
    behind the sums, and stores wait for their lines one behind the other.

    Args:
        cursor: Where the register tile is.
        points: Those of the tile.
        reads: Buffers that are read behind the sums.
        writes: Buffers that are written then.
    """
    steps = prod(cursor.nest.extents[d] for d in cursor.reductions)
    read = [(buffer, False) for buffer in reads if _is_far_row(buffer, cursor)]
    written = [
        (buffer, True)
        for buffer in writes
        if not buffer.nontemporal and _is_far_row(buffer, cursor)
    ]
    fetched = read if steps >= STEPS * len(read) else []
    if steps >= STEPS * len(read + written):
        fetched += written
    for (buffer, is_written), position in product(fetched, points):
        index = cursor.index(buffer, position)
        fetch_line(buffer, index, NEAREST, writes=is_written)


def _is_far_row(buffer: FlatBuffer, cursor: Cursor) -> bool:
    """Whether lanes are neighbours in a buffer that comes from far away."""
    return comes_from_far(buffer) and cursor.vector_stride(buffer) == 1
