"""Owns how four subgroups of a GPU compute a product together."""

from __future__ import annotations

# Subgroups that compute together, and rows of a result of theirs.
WARPS = 4
ROWS = 64
# Most columns of one instruction.
MOST_COLUMNS = 256
# The largest of the instructions, as devices have it.
SHAPE = (ROWS, MOST_COLUMNS, 16)
# Steps whose factors are held together: rows of 128 bytes.
STEP = 64
# Sums of a lane of a result of eight columns, and most that a lane keeps in registers.
_PIECE_SUMS = 4
MOST_SUMS = 128


def share_among_warpgroups(
    tiles: tuple[int, int], columns: int, subgroups: int
) -> tuple[int, int] | None:
    """Return how many subgroups work along the rows; one works along the columns.

    As many as there are, so that each has the fewest sums; None where rows are no whole
    warpgroups, or sums have no room in registers.

    Args:
        tiles: Results of instructions of one subgroup, along rows and columns.
        columns: Columns of the product.
        subgroups: How many there are.
    """
    rows, pieces = tiles
    whole = [n for n in range(WARPS, subgroups + 1, WARPS) if rows % n == 0]
    if not whole or columns > MOST_COLUMNS:
        return None
    most = max(whole)
    sums = rows // most * pieces * _PIECE_SUMS
    return (most, 1) if sums <= MOST_SUMS else None
