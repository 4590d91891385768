"""Owns what it means that a loop nest reads a tensor across the rows that it writes.

Threads that are neighbours in a row of a result read elements of different rows of such
a tensor: each of them is a transaction. Explicit memory gets a copy, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magweld.passes.tiling.regions import Interval, LinearIndex

Index = Sequence[LinearIndex | None]


@dataclass(frozen=True)
class TransposedRead:
    """A read of a nest whose last dimension is not the last that is written.

    Attributes:
        node: The node of the nest that reads.
        number: Of the read.
        loops: Of the root of the nest: that of each dimension of the tensor, without
            loops of one iteration.
        written: That of each dimension of the first result, likewise.
    """

    node: int
    number: int
    loops: tuple[int, ...]
    written: tuple[int, ...]

    def is_across(self, box: Sequence[Interval]) -> bool:
        """Tell whether a row of a tile is read from several rows of the tensor.

        And several elements of each: a column is no better for being copied.

        Args:
            box: The iterations of the root for the tile.
        """
        last = self.loops[-1]
        both = [i for i in self.written if i in self.loops and box[i].size > 1]
        return box[last].size > 1 and both[-1] != last


def transposed_read(
    node: int,
    number: int,
    index: Index,
    shape: Sequence[int],
    written: Index,
    extents: Sequence[int],
) -> TransposedRead | None:
    """Return a read as one across rows, None for others.

    What lies side by side is known where every dimension moves with one loop, or with
    none.

    Args:
        node: The node that reads.
        number: Of the read.
        index: How the loops of the root of its nest index the tensor.
        shape: Extents of the tensor.
        written: How these loops index the first result.
        extents: Of these loops.
    """
    loops, rows = _loops(index, extents), _loops(written, extents)
    if not loops or not rows or loops[-1] not in rows:
        return None
    last = max(dim for dim, extent in enumerate(shape) if extent > 1)
    if not _loops(index[last:], extents):
        return None  # one element of each row
    both = [loop for loop in rows if loop in loops]
    if both[-1] == loops[-1]:
        return None
    return TransposedRead(node, number, loops, rows)


def _loops(index: Index, extents: Sequence[int]) -> tuple[int, ...]:
    """Return the loop of each dimension that moves; () where one has another index."""
    found: list[int] = []
    for expr in index:
        moving = [] if expr is None else [t for t in expr.terms if extents[t[0]] > 1]
        if expr is None or len(moving) > 1 or any(factor != 1 for _, factor in moving):
            return ()
        found += [loop for loop, _ in moving]
    return tuple(found)
