"""Owns what tiles read from outside of a group, in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from magweld.passes.analysis.group import Group
from magweld.passes.analysis.propagation import Tiles
from magweld.passes.analysis.regions import STREAM, Access, Interval
from magweld.targets.device import Device

# A tensor is re-read from a cache only if it leaves room for what streams past it.
RESIDENT_FRACTION = 0.5


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
    return total if run >= transaction else total * transaction // max(run, 1)


class Region(NamedTuple):
    """What one tile reads of a tensor from outside.

    Attributes:
        read: How.
        sizes: Extents of the box.
        points: Elements that a look-up by values finds, at most; 0 for others.
        times: How often, each time another region: once for every block of a stream.
    """

    read: Access
    sizes: tuple[int, ...]
    points: int
    times: int

    def moved(self, transaction: int) -> int:
        """Return the bytes that cross in whole transactions."""
        if self.read.gathered:
            return self.read.gathered_bytes(self.points)
        shape, element = self.read.shape, self.read.element_bytes
        once = transaction_bytes(self.sizes, shape, element, transaction)
        return once * self.times


def regions_read(group: Group, tiles: Tiles) -> list[Region]:
    """Return the regions of external tensors, equal ones once."""
    found: dict[tuple[int, tuple[Interval, ...]], Region] = {}
    for position, read, tensor in group.outer_reads:
        box = read.box(tiles.boxes[position])
        points = tiles.points(position) if read.gathered else 0
        # A block that does not move along the stream stays where it is.
        moves = tiles.blocks is not None and any(map(_is_streamed, box))
        times = tiles.times(position) if moves else 1
        sizes = tuple([interval.size for interval in box])
        found[tensor, box] = Region(read, sizes, points, times)
    return list(found.values())


def _is_streamed(interval: Interval) -> bool:
    return STREAM in dict(interval.offset.terms)


def bytes_read(
    regions: Sequence[Region], grid: int, device: Device, outer: int, inner: int
) -> int:
    """Return the bytes that cross from level `outer` towards the tiles.

    A level between, cache or explicit, is filled once with a tensor that it can hold.
    """
    source = device.levels[outer]
    between = [lvl.capacity for lvl in device.levels[outer + 1 : inner] if lvl.capacity]
    resident = max(between, default=0) * RESIDENT_FRACTION
    total = 0
    for region in regions:
        streamed = region.moved(source.transaction) * grid
        whole = region.read.total_bytes
        total += min(streamed, whole) if whole <= resident else streamed
    return total
