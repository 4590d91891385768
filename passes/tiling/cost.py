"""Owns traffic and predicted time of a tiled group on a device.

Welder's MemTraffic (section 4.2), in bytes, with every level of the
device a candidate bottleneck: seconds are those of the slowest level or of arithmetic,
and a share of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from magweld.passes.tiling.copy_stages import CopyStages
from magweld.passes.tiling.core_starts import TILE_SECONDS, start_seconds
from magweld.passes.tiling.external_reads import (
    Reads,
    transaction_bytes,
    written_boxes,
)
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loads_in_flight import UNIT_THREADS
from magweld.passes.tiling.matrix_units import BLOCK_THREADS, matrix_work
from magweld.passes.tiling.needs import Need, OperatorTile
from magweld.passes.tiling.padded_products import padded_work
from magweld.passes.tiling.placement import footprint_bytes
from magweld.passes.tiling.propagation import Tiles
from magweld.passes.tiling.regions import Interval
from magweld.passes.tiling.steps import block_count
from magweld.passes.tiling.thread_shares import accessed_bytes, product_slots
from magweld.passes.tiling.vectors import moved_bytes, vector_waste
from magweld.passes.tiling.window_products import window_work
from magweld.targets.device import (
    ARITHMETIC,
    LAUNCH_SECONDS,
    Device,
    Level,
    LevelKind,
)

# How much of the time of the faster levels is not hidden behind the slowest.
OVERLAP_LOSS = 0.5
# From the copy of a step of operands to shared memory until it is there. An order of
# magnitude as well, of a GPU whose memory is busy.
COPY_SECONDS = 600e-9


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
        reads: What tiles read from outside.
        reuse: Bytes of reuse tiles and of windows with a border, all tiles.
        waiting: Bytes of sums that wait between two blocks of a reduction in a cache.
        operations: Arithmetic of all tiles.
        slots: The operations that this takes the time of: vectors may not be full, and
            matrix instructions are faster.
        loaded: Bytes that matrix instructions load from the level of the tiles.
        accessed: What threads take of that level beside, for products and windows.
        started: Seconds that a tile, or a block of it, takes beside.
    """

    reads: Reads
    reuse: int
    waiting: int
    operations: int
    slots: float
    loaded: int
    accessed: int
    started: float


def cost(group: Group, tiles: Tiles, device: Device, level: Level, step: int) -> Cost:
    """Return the predicted cost of running `group` with its reuse tiles in `level`."""
    found = cost_of(work_of(group, tiles, device), group, tiles, device, level)
    assert found is not None, "nothing is beyond infinity"
    return replace(found, footprint=footprint_bytes(group, tiles, level, step))


def with_copies(
    price: Cost,
    tiles: Tiles,
    level: Level,
    steps: int,
    stages: CopyStages | None,
) -> Cost:
    """Return the cost of products whose operands are copied some steps ahead.

    What is on its way while a step is computed is hidden the better the more steps are
    held. A unit waits no less than a copy takes for the steps that are on their way,
    those of all tiles that it holds; without copies ahead for each step in turn.

    Args:
        price: The cost where nothing is copied ahead.
        tiles: What every operator computes.
        level: The memory that holds the tiles.
        steps: How many steps the longest product of a tile has.
        stages: Steps that are held, None where none is copied ahead.
    """
    units = max(1, level.units)
    held = 1 if stages is None else stages.count
    footprint = price.footprint if stages is None else stages.footprint
    beside = min(level.capacity // max(1, footprint), UNIT_THREADS // BLOCK_THREADS)
    rounds = -(-tiles.grid // units) * steps
    waited = rounds * COPY_SECONDS / (max(1, beside) * max(1, held - 1))
    fixed = fixed_seconds(tiles.grid * _blocks(tiles), units)
    busy = overlapped(price.shares, OVERLAP_LOSS / held)
    seconds = max(busy, waited) if held > 1 else busy + waited
    return replace(price, seconds=seconds + fixed)


class _Done(NamedTuple):
    """What an operator does for one tile.

    Attributes:
        size: Bytes of one result, made once.
        waiting: Bytes of sums that wait between two blocks of a reduction.
        windows: Bytes of windows with a border.
        operations: Arithmetic.
        slots: The operations that this takes the time of.
        loaded: Bytes that matrix instructions load from the level of the tile.
        accessed: What threads take of that level beside, for a product or windows.
    """

    size: int
    waiting: int
    windows: int
    operations: int
    slots: float
    loaded: int
    accessed: int


def work_of(group: Group, tiles: Tiles, device: Device) -> Work:
    """Return what tiles do, as far as that does not depend on the level."""
    last, nests = len(group.nodes) - 1, group.nests()
    reuse = waiting = operations = loaded = accessed = 0
    slots = 0.0
    reused = []
    for position, part in enumerate(tiles.parts):
        done = _done(part, device)
        melts = nests.is_fused(position)
        # Reuse tiles are written once and read at least once; so are accumulators of
        # a stream, once a block.
        if (position < last or part.times > 1) and not melts:
            reuse += done.size * part.times
        reused.append(0 if melts or position == last else done.size)
        waiting += done.waiting
        # So are windows with a border around them.
        reuse += done.windows
        operations += done.operations
        slots += done.slots
        loaded += done.loaded
        accessed += done.accessed
    # What is no longer needed gives its place to others.
    most = max(
        size + sum([reused[producer] for _, producer, _ in inner])
        for size, inner in zip(reused, group.inner_reads, strict=True)
    )
    rescaling = _rescaling_flops(tiles)
    return Work(
        reads=Reads(group, tiles, most, device.levels[0].transaction),
        reuse=reuse * tiles.grid,
        waiting=waiting * tiles.grid,
        operations=(operations + rescaling) * tiles.grid,
        slots=(slots + rescaling) * tiles.grid,
        loaded=loaded * tiles.grid,
        accessed=accessed * tiles.grid,
        started=start_seconds(group, tiles, device),
    )


def _done(part: OperatorTile, device: Device) -> _Done:
    """Return what an operator does, found once for a device."""
    known: tuple[Device, _Done] | None = part.known.get("done")
    if known is not None and known[0] is device:
        return known[1]
    node = part.model
    size = part.results * node.writes[0].element_bytes
    windows = sum(
        moved_bytes(_sizes(read.window(part.box)), read.element_bytes, device)
        for read in node.reads
        if read.padded
    )
    found = (work(part, device) for work in (matrix_work, window_work, padded_work))
    matrices = next((one for one in found if one is not None), None)
    if matrices is None:
        flops, loaded = part.points * node.flops, 0
        accessed = accessed_bytes(part, device)
        slots = flops * vector_waste(part, device) * product_slots(part, device)
    else:
        flops, loaded, accessed = matrices.operations, matrices.loaded, 0
        slots = matrices.seconds * device.peak_gflops * 1e9
    waiting = size * (block_count(node) - 1)
    done = _Done(size, waiting, windows, flops, slots, loaded, accessed)
    part.known["done"] = device, done
    return done


def cost_of(
    work: Work,
    group: Group,
    tiles: Tiles,
    device: Device,
    level: Level,
    limit: float = math.inf,
    loss: float = OVERLAP_LOSS,
) -> Cost | None:
    """Return the predicted cost of work whose tiles lie in `level`.

    None if it is more than `limit` seconds. Its footprint is left at 0: placing the
    tiles takes as long as all of the rest. `loss` is what of the faster parts is not
    hidden behind the slowest.
    """
    inner, workers = device.levels.index(level), max(1, level.units)
    loaded = work.reads.by_tiles(device.levels[inner - 1].transaction)
    stored = _bytes_written(group, tiles, device, inner - 1, inner)
    idle = waves(tiles.grid, workers)
    own = _own_shares(work, (loaded, stored), device, level, idle)
    rounds = tiles.grid * _blocks(tiles)
    fixed = fixed_seconds(rounds, workers, work.started)
    if overlapped(own, loss) + fixed > limit:
        return None  # before what takes longest to find out
    writes = [
        _bytes_written(group, tiles, device, outer, inner) for outer in range(inner)
    ]
    # Explicit memory is filled again for every tile, a cache with what is new.
    last = inner + (1 if level.kind is LevelKind.CACHE else 0)
    reads = [
        work.reads.from_level(outer, device.levels[number + 1 : last])
        for number, outer in enumerate(device.levels[:inner])
    ]
    outer = (
        Share(outer.name, read + written, outer.transfer_seconds(read, written))
        for outer, read, written in zip(device.levels, reads, writes, strict=False)
    )
    shares = (*outer, *own)
    seconds = overlapped(shares, loss) + fixed
    if seconds > limit:
        return None
    return Cost(
        footprint=0,
        traffic=reads[0] + writes[0],
        tile_traffic=loaded + stored,
        seconds=seconds,
        shares=shares,
    )


def _own_shares(
    work: Work, moved: tuple[int, int], device: Device, level: Level, idle: float
) -> tuple[Share, Share]:
    """Return the shares of the level of the tiles and of arithmetic.

    Args:
        work: What tiles do.
        moved: Bytes that they read from outside and write there.
        device: What runs them.
        level: Where they lie.
        idle: How much longer it takes than if no unit were ever idle.
    """
    reuse = work.reuse + work.waiting * (level.kind is LevelKind.CACHE)
    into, out_of = (size + reuse for size in moved)
    into += work.loaded + work.accessed
    seconds = level.transfer_seconds(into, out_of) * idle
    slots = _slot_seconds(work.slots, device, idle)
    return (
        Share(level.name, into + out_of, seconds),
        Share(ARITHMETIC, work.operations, slots),
    )


def arithmetic_seconds(
    needs: Sequence[Need], grid: int, device: Device, units: int
) -> float:
    """Return what arithmetic alone takes, which `cost_of` is never less than.

    But for rounding: numbers are summed in another order.

    Args:
        needs: What the nodes of a group need for one tile that no others hold.
        grid: How many tiles there are.
        device: What runs them.
        units: How many tiles it runs at a time.
    """
    slots = sum([_slots(need, device) for need in needs]) * grid
    idle = waves(grid, units)
    return _slot_seconds(slots, device, idle)


def _slots(need: Need, device: Device) -> float:
    """Return the slots of an operator, and of what it alone reads, found once."""
    known: tuple[Device, float] | None = need.known.get("slots")
    if known is None or known[0] is not device:
        inner = [_slots(one, device) for one in need.inner]
        known = device, _done(need.part, device).slots + sum(inner)
        need.known["slots"] = known
    return known[1]


def _slot_seconds(slots: float, device: Device, idle: float) -> float:
    return slots * idle / (device.peak_gflops * 1e9)


def waves(grid: int, units: int) -> float:
    """Return how much longer tiles take than if no unit were ever idle.

    Bandwidths and arithmetic are of all units: idle ones in the last wave are lost.
    """
    return -(-grid // units) * units / grid


def fixed_seconds(rounds: int, units: int, each: float = TILE_SECONDS) -> float:
    """Return what starting so many tiles, or blocks of them, takes on some units."""
    return rounds * each / units + LAUNCH_SECONDS


def _sizes(box: tuple[Interval, ...]) -> tuple[int, ...]:
    return tuple([interval.size for interval in box])


def overlapped(shares: Sequence[Share], loss: float = OVERLAP_LOSS) -> float:
    """Return the time of parts that work side by side, but not entirely."""
    times = [share.seconds for share in shares]
    slowest = max(times)
    return slowest + loss * (sum(times) - slowest)


def _blocks(tiles: Tiles) -> int:
    return 1 if tiles.blocks is None else tiles.blocks.count


def _rescaling_flops(tiles: Tiles) -> int:
    """Operations of one tile that bring sums from one maximum to the next."""
    rescaled = () if tiles.blocks is None else tiles.blocks.stream.rescaled
    parts = [tiles.parts[node] for node, _ in rescaled]
    return sum(part.results * part.times for part in parts)


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
    return sum(
        tiles.grid
        * transaction_bytes(_sizes(box), write.shape, write.element_bytes, smallest)
        for write, box in written_boxes(group, tiles)
    )
