"""Owns what tiles read from outside of a group, in bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Tiles
from magweld.passes.tiling.regions import STREAM, Access, Interval
from magweld.passes.tiling.tile_walk import Sizes, Union, walk
from magweld.targets.device import Level

# What is touched between two reads of the same leaves this much of a cache to what
# else passes through it: the code of other units that share it, lines that lie badly.
RESIDENT_FRACTION = 0.75


def transaction_bytes(
    region: tuple[int, ...], shape: tuple[int, ...], element: int, transaction: int
) -> int:
    """Return the bytes moved for a box of a row-major tensor, in whole transactions.

    Args:
        region: Extents of the box.
        shape: Extents of the tensor.
        element: Bytes of an element.
        transaction: Bytes that one access moves at least.
    """
    run = element
    for part, whole in zip(reversed(region), reversed(shape), strict=True):
        run *= part
        if part != whole:
            break
    total = math.prod(region) * element
    if run % transaction == 0 or run == total == math.prod(shape) * element:
        return total
    if transaction % run == 0:
        return total * transaction // run
    # Such runs begin anywhere: what they share with others at both ends comes as well.
    return total // run * (run - element + transaction)


class Region(NamedTuple):
    """What one tile reads of a tensor from outside.

    Attributes:
        read: How.
        tensor: Number that is equal for equal tensors.
        box: Where; of a stream one block.
        points: Elements that a look-up by values finds, at most; 0 for others.
        times: How often, each time another region: once for every block of a stream.
    """

    read: Access
    tensor: int
    box: tuple[Interval, ...]
    points: int
    times: int

    def moved(self, transaction: int, sizes: Sizes, runs: int = 1) -> int:
        """Return the bytes of whole transactions that some tiles read, each once.

        Args:
            transaction: Bytes that one access moves at least.
            sizes: Extents of the box that all of them read.
            runs: How many they are.
        """
        if self.read.gathered:
            return self.read.gathered_bytes(self.points * runs)
        return transaction_bytes(
            sizes, self.read.shape, self.read.element_bytes, transaction
        )

    def by_tile(self, transaction: int) -> int:
        """Return the bytes of whole transactions that one tile reads."""
        sizes = self.read.moved or tuple([interval.size for interval in self.box])
        return self.moved(transaction, sizes) * self.times


class Reads:
    """All that the tiles of a group read from outside."""

    def __init__(self, group: Group, tiles: Tiles, reused: int, line: int) -> None:
        """Find the regions, equal ones once.

        Args:
            group: The operators.
            tiles: What each of them computes.
            reused: Bytes that a tile holds of what operators hand on to each other.
            line: Bytes that are held together.
        """
        self._group, self._tiles = group, tiles
        self._reused, self._line = reused, line
        found: dict[tuple[int, tuple[Interval, ...]], Region] = {}
        for position, number, tensor in group.outer_reads:
            part = tiles.parts[position]
            read, box = part.model.reads[number], part.read_boxes[number]
            points = part.points if read.gathered else 0
            # A block that does not move along the stream stays where it is.
            moves = tiles.blocks is not None and any(map(_is_streamed, box))
            times = part.times if moves else 1
            found[tensor, box] = Region(read, tensor, box, points, times)
        self._regions = tuple(found.values())
        self._by_tile: dict[int, list[int]] = {}
        self._known: list[_Neighbours] = []
        self._others = self._larger_parts()

    def by_tiles(self, transaction: int) -> int:
        """Return the bytes that all tiles read."""
        return sum(self._of_one(transaction)) * self._tiles.grid

    def _of_one(self, transaction: int) -> list[int]:
        """Bytes of each region that one tile reads."""
        if transaction not in self._by_tile:
            found = [region.by_tile(transaction) for region in self._regions]
            self._by_tile[transaction] = found
        return self._by_tile[transaction]

    def from_level(self, source: Level, between: Sequence[Level]) -> int:
        """Return the bytes that cross from a level towards the tiles.

        Args:
            source: The level.
            between: Those on the way. What the largest of them has room for until it
                is read again comes from the source once.
        """
        transaction, grid = source.transaction, self._tiles.grid
        capacity = max((level.capacity for level in between), default=0)
        room = capacity * RESIDENT_FRACTION
        if self._everything <= room:
            one = zip(self._of_one(transaction), self._regions, strict=True)
            return self._sum([min(n * grid, r.read.total_bytes) for n, r in one])
        part = self._largest_part(room)
        if part is None:
            return self.by_tiles(transaction)
        found = zip(self._regions, part.read, strict=True)
        moved = [r.moved(transaction, sizes, part.runs) for r, sizes in found]
        return self._sum(moved) * part.repeats

    @cached_property
    def _everything(self) -> int:
        """Bytes of all that is read and written."""
        read = self._sum([region.read.total_bytes for region in self._regions])
        return read + sum(w.total_bytes for w in self._group.stored) + self._reused

    @cached_property
    def _overlap(self) -> bool:
        return len({region.tensor for region in self._regions}) < len(self._regions)

    def _sum(self, sizes: list[int]) -> int:
        """Return the sum of the regions' sizes, of no tensor more than it has."""
        if not self._overlap:
            return sum(sizes)
        found: dict[int, int] = {}
        for (read, tensor, *_), size in zip(self._regions, sizes, strict=True):
            whole = math.prod(read.shape) * read.element_bytes
            found[tensor] = min(found.get(tensor, 0) + size, whole)
        return sum(found.values())

    def _largest_part(self, room: float) -> _Neighbours | None:
        """Return the largest part of the walk in which nothing is read again.

        None if not even a tile finds what it reads again.
        """
        last = None
        for part in self._parts():
            last = part if last is not None or part.held <= room else None
            if part.held > room:
                break
        return last

    def _parts(self) -> Iterator[_Neighbours]:
        """Yield ever larger parts of the walk, from one tile to all of it."""
        yield from self._known
        for part in self._others:
            self._known.append(part)
            yield part

    def _larger_parts(self) -> Iterator[_Neighbours]:
        """Yield each part once."""
        steps = walk(self._group, self._tiles)
        loops, clamps = len(self._group.root.extents), self._tiles.clamps
        read = [Union(r.box, r.read.shape, loops, clamps) for r in self._regions]
        written = [
            (write, Union(box, write.shape, loops, clamps))
            for write, box in written_boxes(self._group, self._tiles)
        ]
        repeats, runs = math.prod([step.runs for step in steps]), 1
        for step in (None, *steps):
            if step is not None:
                runs, repeats = runs * step.runs, repeats // step.runs
                for union in (*read, *[union for _, union in written]):
                    union.grow(step)
            sizes = [union.sizes for union in read]
            found = zip(self._regions, sizes, strict=True)
            held = self._sum([r.moved(self._line, box, runs) for r, box in found])
            held += sum(
                [
                    transaction_bytes(
                        union.sizes, write.shape, write.element_bytes, self._line
                    )
                    for write, union in written
                ]
            )
            yield _Neighbours(sizes, held + self._reused, runs, repeats)


class _Neighbours(NamedTuple):
    """Tiles that follow each other, those within some inner loops of the walk.

    Attributes:
        read: Extents of what they read of the region of each read.
        held: Bytes that are in use while they are computed.
        runs: How many tiles, or blocks of tiles, they are.
        repeats: How many such parts the walk has.
    """

    read: list[Sizes]
    held: int
    runs: int
    repeats: int


def written_boxes(
    group: Group, tiles: Tiles
) -> list[tuple[Access, tuple[Interval, ...]]]:
    """Return what is stored whole, each with the box that one tile makes of it."""
    last = len(group.nodes) - 1
    writers = [last] * len(group.root.writes) + [node for node, _ in group.outputs]
    return [
        (write, write.box(tiles.parts[writer].box))
        for writer, write in zip(writers, group.stored, strict=True)
    ]


def _is_streamed(interval: Interval) -> bool:
    return STREAM in dict(interval.offset.terms)
