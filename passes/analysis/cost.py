"""Owns traffic and predicted time of a tiled group on a device.

Welder's MemTraffic (section 4.2), in bytes, with every level of the
device a candidate bottleneck: seconds are those of the slowest level or of arithmetic,
and a share of the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from magweld.passes.analysis.external_reads import (
    Region,
    bytes_read,
    regions_read,
    transaction_bytes,
)
from magweld.passes.analysis.group import Group
from magweld.passes.analysis.placement import footprint_bytes
from magweld.passes.analysis.propagation import Tiles
from magweld.passes.analysis.regions import Interval
from magweld.passes.analysis.steps import block_count
from magweld.passes.analysis.vectors import vector_waste
from magweld.targets.device import ARITHMETIC, Device, Level, LevelKind

# Fixed costs that make a plan of a million tiny tiles lose against a few large ones.
# Orders of magnitude, not measurements of one machine.
TILE_SECONDS = 50e-9
LAUNCH_SECONDS = 3e-6
# How much of the time of the faster levels is not hidden behind the slowest.
OVERLAP_LOSS = 0.5


@dataclass(frozen=True)
class Share:
    """What one part of a device has to do for a plan.

    Attributes:
        name: Of a memory level, or `ARITHMETIC`.
        amount: Bytes read from and written to the level; operations.
        seconds: How long that takes if nothing else is waited for.
    """

    name: str
    amount: int
    seconds: float


@dataclass(frozen=True)
class Cost:
    """Predicted cost of a plan.

    Attributes:
        footprint: Bytes of the tile level that one tile needs.
        traffic: Bytes moved from and to the outermost level.
        tile_traffic: Bytes moved into and out of the tile level, all tiles.
        seconds: Predicted time of one run.
        shares: Of every level from the outermost to that of the tiles, whose bytes
            include reuse tiles, and of arithmetic.
    """

    footprint: int
    traffic: int
    tile_traffic: int
    seconds: float
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Work:
    """What the tiles of a group do, in whatever level they lie.

    Attributes:
        regions: What a tile reads from outside.
        reuse: Bytes of reuse tiles and of windows with a border, all tiles.
        waiting: Bytes of sums that wait between two blocks of a reduction in a cache.
        operations: Arithmetic of all tiles.
        slots: The operations that this takes the time of: vectors may not be full.
    """

    regions: tuple[Region, ...]
    reuse: int
    waiting: int
    operations: int
    slots: float


def cost(group: Group, tiles: Tiles, device: Device, level: Level, step: int) -> Cost:
    """Return the predicted cost of running `group` with its reuse tiles in `level`."""
    found = cost_of(work_of(group, tiles, device), group, tiles, device, level)
    return replace(found, footprint=footprint_bytes(group, tiles, level, step))


def work_of(group: Group, tiles: Tiles, device: Device) -> Work:
    """Return what tiles do, as far as that does not depend on the level."""
    last = len(group.nodes) - 1
    reuse = waiting = operations = 0
    slots = 0.0
    for position, (node, box) in enumerate(zip(group.nodes, tiles.boxes, strict=True)):
        size = math.prod(node.tile_of(box)) * node.writes[0].element_bytes
        times = tiles.times(position)
        # Reuse tiles are written once and read at least once; so are accumulators of
        # a stream, once a block.
        if (position < last or times > 1) and not group.stays_in_registers(position):
            reuse += size * times
        waiting += size * (block_count(node) - 1)
        # So are windows with a border around them.
        reuse += sum(
            math.prod(_sizes(read.window(box))) * read.element_bytes
            for read in node.reads
            if read.padded
        )
        flops = tiles.points(position) * node.flops
        operations += flops
        slots += flops * vector_waste(group, tiles, position, device)
    rescaling = _rescaling_flops(group, tiles)
    return Work(
        regions=tuple(regions_read(group, tiles)),
        reuse=reuse * tiles.grid,
        waiting=waiting * tiles.grid,
        operations=(operations + rescaling) * tiles.grid,
        slots=(slots + rescaling) * tiles.grid,
    )


def cost_of(
    work: Work, group: Group, tiles: Tiles, device: Device, level: Level
) -> Cost:
    """Return the predicted cost of work whose tiles lie in `level`.

    Its footprint is left at 0: placing the tiles takes as long as all of the rest.
    """
    inner, workers = device.levels.index(level), max(1, level.units)
    reads = [
        bytes_read(work.regions, tiles.grid, device, outer, inner)
        for outer in range(inner)
    ]
    writes = [
        _bytes_written(group, tiles, device, outer, inner) for outer in range(inner)
    ]
    waves = -(-tiles.grid // workers) * workers / tiles.grid
    reuse = work.reuse + work.waiting * (level.kind is LevelKind.CACHE)
    shares = [
        Share(outer.name, read + written, outer.transfer_seconds(read, written))
        for outer, read, written in zip(device.levels, reads, writes, strict=False)
    ]
    # Bandwidths are of all units together: idle ones in the last wave are lost.
    into, out_of = reads[-1] + reuse, writes[-1] + reuse
    seconds = level.transfer_seconds(into, out_of) * waves
    shares.append(Share(level.name, into + out_of, seconds))
    seconds = work.slots * waves / (device.peak_gflops * 1e9)
    shares.append(Share(ARITHMETIC, work.operations, seconds))
    fixed = fixed_seconds(tiles.grid * _blocks(tiles), workers)
    return Cost(
        footprint=0,
        traffic=reads[0] + writes[0],
        tile_traffic=reads[-1] + writes[-1],
        seconds=_overlapped([share.seconds for share in shares]) + fixed,
        shares=tuple(shares),
    )


def fixed_seconds(rounds: int, units: int) -> float:
    """Return what starting so many tiles, or blocks of them, takes on some units."""
    return rounds * TILE_SECONDS / units + LAUNCH_SECONDS


def _sizes(box: tuple[Interval, ...]) -> tuple[int, ...]:
    return tuple([interval.size for interval in box])


def _overlapped(times: list[float]) -> float:
    """Return the time of parts that work side by side, but not entirely."""
    slowest = max(times)
    return slowest + OVERLAP_LOSS * (sum(times) - slowest)


def _blocks(tiles: Tiles) -> int:
    return 1 if tiles.blocks is None else tiles.blocks.count


def _rescaling_flops(group: Group, tiles: Tiles) -> int:
    """Operations of one tile that bring sums from one maximum to the next."""
    rescaled = () if tiles.blocks is None else tiles.blocks.stream.rescaled
    return sum(
        math.prod(group.nodes[node].tile_of(tiles.boxes[node])) * tiles.times(node)
        for node, _ in rescaled
    )


def _bytes_written(
    group: Group, tiles: Tiles, device: Device, outer: int, inner: int
) -> int:
    """Bytes of results that go from the tiles to level `outer`.

    They come in whole transactions, unless a cache on the way merges neighbours.
    """
    way = device.levels[outer + 1 : inner + 1]
    if any(level.kind is LevelKind.CACHE for level in way):
        return sum(write.total_bytes for write in group.stored)
    smallest = device.levels[outer].to_write
    last = len(group.nodes) - 1
    writers = [last] * len(group.root.writes) + [node for node, _ in group.outputs]
    return sum(
        tiles.grid
        * transaction_bytes(
            _sizes(write.box(tiles.boxes[writer])),
            write.shape,
            write.element_bytes,
            smallest,
        )
        for writer, write in zip(writers, group.stored, strict=True)
    )
