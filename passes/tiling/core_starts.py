"""Owns what begins again and again on a core: loop nests, and rows of far memory."""

from __future__ import annotations

import math

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Tiles
from magweld.passes.tiling.regions import Access, Interval
from magweld.targets.device import Device

# Fixed costs that make a plan of a million tiny tiles lose against a few large ones:
# to begin a tile, and each nest of it behind the first, whose first results others wait
# for. Orders of magnitude, not measurements of one machine.
TILE_SECONDS, NEST_SECONDS = 50e-9, 10e-9
# To begin a row of an image that no cache of the core holds: prefetchers find it after
# some lines, of which a core waits for several at a time. Windows over 18 of 128
# columns took so much longer than their bytes (Zen 4).
ROW_SECONDS = 8e-9


def start_seconds(group: Group, tiles: Tiles, device: Device) -> float:
    """Return what a tile, or a block of it, takes to begin.

    Threads that share a tile hide all but that behind each other.
    """
    if device.threads > 1:
        return TILE_SECONDS
    nests = len(group.nests().members)
    started = TILE_SECONDS + (nests - 1) * NEST_SECONDS
    return started + _rows(group, tiles, device) * ROW_SECONDS


def _rows(group: Group, tiles: Tiles, device: Device) -> int:
    """Return how many rows of far images a tile copies into windows with a border."""
    own = [level.capacity for level in device.levels[1:] if level.units == device.units]
    near = max(own, default=0)
    found = {
        (tensor, box): _runs(read, box)
        for position, number, tensor in group.outer_reads
        for part in tiles.parts[position : position + 1]
        for read, box in [(part.model.reads[number], part.read_boxes[number])]
        if read.padded and read.total_bytes > near
    }
    return sum(found.values())


def _runs(read: Access, box: tuple[Interval, ...]) -> int:
    """Return in how many pieces of memory a box of a tensor lies."""
    runs = math.prod([interval.size for interval in box])
    for interval, extent in zip(reversed(box), reversed(read.shape), strict=True):
        runs //= max(1, interval.size)
        if interval.size != extent:
            break
    return runs
