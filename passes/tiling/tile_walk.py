"""Owns the order in which tiles follow each other, and what neighbours in it touch.

Tiles are walked row-major, and within a tile the blocks of what is streamed. What is
touched again is in a cache still if all that was touched meanwhile fits into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from magweld.passes.tiling.clamps import Clamp
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Tiles
from magweld.passes.tiling.regions import STREAM, Interval, LinearIndex

Sizes = tuple[int, ...]


class Step(NamedTuple):
    """A loop over tiles, or over the blocks of a tile.

    Attributes:
        loop: Its number: a parallel loop of the root, or `STREAM`.
        runs: How many iterations it has.
        distance: How far the last one is from the first.
    """

    loop: int
    runs: int
    distance: int


def walk(group: Group, tiles: Tiles) -> tuple[Step, ...]:
    """Return the loops with more than one iteration, from the innermost outwards."""
    root, found = group.root, []
    if tiles.blocks is not None:
        left = tiles.blocks.stream.extent - tiles.blocks.size
        found.append(Step(STREAM, tiles.blocks.count, left))
    for loop in reversed(root.parallel):
        extent, size = root.extents[loop], tiles.parts[-1].box[loop].size
        if size < extent:
            found.append(Step(loop, -(-extent // size), extent - size))
    return tuple(found)


class Union:
    """What is touched of a tensor within ever more loops of a walk."""

    def __init__(
        self,
        box: Sequence[Interval],
        shape: Sizes,
        loops: int,
        clamps: Sequence[Clamp],
    ) -> None:
        """Begin with one tile, or one block of it.

        Args:
            box: What it touches.
            shape: Extents of the tensor.
            loops: How many the root of the group has.
            clamps: Offsets that are no sums of loops, numbered behind these.
        """
        self._shape = shape
        self._reach = [interval.size for interval in box]
        # What lies between boxes that stand apart is not touched.
        self._most = list(self._reach)
        self._moves = [
            (dim, _distances(interval.offset, loops, clamps))
            for dim, interval in enumerate(box)
            if interval.offset.terms
        ]
        self.sizes: Sizes = tuple(self._reach)

    def grow(self, step: Step) -> None:
        """Add all iterations of the next loop."""
        for dim, move in self._moves:
            if step.loop in move:
                self._reach[dim] += move[step.loop] * step.distance
                self._most[dim] *= step.runs
        self.sizes = tuple(map(min, self._reach, self._most, self._shape))


def _distances(
    offset: LinearIndex, loops: int, clamps: Sequence[Clamp]
) -> dict[int, int]:
    """Return how far an offset moves at most with one iteration of each loop."""
    found: dict[int, int] = {}
    for loop, coefficient in offset.terms:
        inner = {loop: 1}
        if loop >= loops:
            inner = _distances(clamps[loop - loops].offset, loops, clamps)
        for number, distance in inner.items():
            found[number] = found.get(number, 0) + coefficient * distance
    return found
