"""Owns which rows of an operand meet in the sets of the first cache."""

from __future__ import annotations

from math import ceil, gcd

from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.tiling.first_cache import LINE_BYTES, SETS, WAYS

# Rows whose lines meet in one set of the first cache: so many of a block of rows evict
# each other and the panel, with a panel in its place, which begins anywhere in its
# lines, and beside a packed one. 1024 channels of 14 x 14 pixels run at 40 GMAC/s with
# copied rows, at 21 without; 128 rows of 1024 by 1024 at 35 and 15 (Zen 3).
MEETING_IN_PLACE, MEETING_PACKED = 2, 3
# Widest vectors for which that was measured.
MEETING_BITS = 256
# Elements of rows that are copied at most: the second cache holds them.
MOST_COPIED = 1 << 16
# Bits of the elements for which that was measured.
WORD_BITS = 32


def meeting_elements(
    nest: LoopNest, factor: Access, row: int, rows: int, meeting: int
) -> int:
    """Return how many elements have the rows of a factor that evict each other.

    They are contiguous along the only reduction, and pages apart or parts of a page
    that divide it: lines of several rows are in one set.

    Args:
        nest: A product.
        factor: What is read by single elements.
        row: The loop over its rows.
        rows: How many of these a register tile reads side by side.
        meeting: How many may not meet in one set.
    """
    moved = {d for d, stride in enumerate(factor.strides) if stride}
    reductions = nest.reductions
    if len(reductions) != 1 or moved != {*reductions, row}:
        return 0
    (depth,) = reductions
    if factor.bits != WORD_BITS or factor.strides[depth] != 1:
        return 0
    pitch, rest = divmod(abs(factor.strides[row]) * factor.bits, LINE_BYTES * 8)
    places = SETS // gcd(pitch, SETS)
    if rest or not pitch or ceil(rows / places) < meeting:
        return 0
    return nest.extents[row] * nest.extents[depth]


def panel_collides(nest: LoopNest, panel: Access, columns: int) -> bool:
    """Return whether rows of a panel evict each other in its place, and not copied."""
    if len(nest.reductions) != 1:
        return False
    (depth,) = nest.reductions
    line = LINE_BYTES * 8
    pitch, rest = divmod(abs(panel.strides[depth]) * panel.bits, line)
    lines = ceil(columns * panel.bits / line)
    if nest.extents[depth] * lines > SETS * WAYS or rest or not pitch:
        return False
    return nest.extents[depth] > SETS // gcd(pitch, SETS) * WAYS
