"""Owns traffic and predicted time of a tiled group on a device.

Welder's MemTraffic (section 4.2), in bytes, with every level of the
device a candidate bottleneck: seconds are those of the slowest level or of arithmetic,
and a share of the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from magweld.passes.analysis.external_reads import (
    bytes_read,
    regions_read,
    transaction_bytes,
)
from magweld.passes.analysis.placement import footprint_bytes
from magweld.passes.analysis.propagation import Group, Tiles
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


def _sizes(box: tuple[Interval, ...]) -> tuple[int, ...]:
    return tuple(interval.size for interval in box)


def cost(group: Group, tiles: Tiles, device: Device, level: Level, step: int) -> Cost:
    """Return the predicted cost of running `group` with its reuse tiles in `level`."""
    inner = device.levels.index(level)
    regions = regions_read(group, tiles)
    reads = [bytes_read(regions, tiles.grid, device, o, inner) for o in range(inner)]
    writes = [
        _bytes_written(group, tiles, device, outer, inner) for outer in range(inner)
    ]
    workers = max(1, level.units)
    waves = -(-tiles.grid // workers) * workers / tiles.grid
    # Reuse tiles are written once and read at least once; so are accumulators of a
    # stream, once a block.
    reuse = sum(
        _tile_bytes(group, tiles, position) * tiles.times(position) * tiles.grid
        for position, node in enumerate(group.nodes)
        if not group.stays_in_registers(position)
        and (position < len(group.nodes) - 1 or tiles.times(position) > 1)
    )
    # So are sums that wait between two blocks of a reduction.
    reuse += sum(
        _tile_bytes(group, tiles, position) * (block_count(node) - 1) * tiles.grid
        for position, node in enumerate(group.nodes)
        if level.kind is LevelKind.CACHE
    )
    # So are windows with a border around them.
    reuse += sum(
        math.prod(_sizes(read.window(box))) * read.element_bytes * tiles.grid
        for node, box in zip(group.nodes, tiles.boxes, strict=True)
        for read in node.reads
        if read.padded
    )
    work = [
        tiles.points(position) * node.flops * tiles.grid
        for position, node in enumerate(group.nodes)
    ]
    slots = sum(
        flops * vector_waste(group, tiles, position, device)
        for position, flops in enumerate(work)
    )
    rescaling = tiles.grid * _rescaling_flops(group, tiles)
    shares = [
        Share(outer.name, read + written, outer.transfer_seconds(read, written))
        for outer, read, written in zip(device.levels, reads, writes, strict=False)
    ]
    # Bandwidths are of all units together: idle ones in the last wave are lost.
    into, out_of = reads[-1] + reuse, writes[-1] + reuse
    seconds = level.transfer_seconds(into, out_of) * waves
    shares.append(Share(level.name, into + out_of, seconds))
    seconds = (slots + rescaling) * waves / (device.peak_gflops * 1e9)
    shares.append(Share(ARITHMETIC, sum(work) + rescaling, seconds))
    fixed = tiles.grid * _blocks(tiles) * TILE_SECONDS / workers + LAUNCH_SECONDS
    return Cost(
        footprint=footprint_bytes(group, tiles, level, step),
        traffic=reads[0] + writes[0],
        tile_traffic=reads[-1] + writes[-1],
        seconds=_overlapped([share.seconds for share in shares]) + fixed,
        shares=tuple(shares),
    )


def _overlapped(times: list[float]) -> float:
    """Return the time of parts that work side by side, but not entirely."""
    slowest = max(times)
    return slowest + OVERLAP_LOSS * (sum(times) - slowest)


def _tile_bytes(group: Group, tiles: Tiles, position: int) -> int:
    node = group.nodes[position]
    size = math.prod(node.tile_of(tiles.boxes[position]))
    return size * node.writes[0].element_bytes


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
