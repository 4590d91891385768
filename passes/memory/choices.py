"""Owns the choice of a tile for a cone: what each one costs and takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from magweld.passes.memory.boxes import Box, whole
from magweld.passes.memory.cones import Cone, Use
from magweld.targets.device import Device

# Tiles are unrolled: each is a few entries of the program.
MAX_TILES = 512
# What starting the program of one tile costs.
SECONDS_A_TILE = 50e-6
# How much faster blocks have to be than bands: they have nine shapes, which are code
# of their own, instead of three.
BLOCK_HANDICAP = 1.1
# A dimension is worth splitting if half of it takes at most this share of the memory.
WORTH_SPLITTING = 0.9
# Smaller tiles than those that take this part of the budget are not looked at.
SMALL_ENOUGH = 16
# Tiles are a multiple of a power of two that is at most one part in so many of them:
# what is up-sampled by such a factor then begins where its source does.
ALIGNMENT_SHARE = 8


@dataclass(frozen=True)
class Choice:
    """One way to run a cone.

    Attributes:
        tile: Extents of a tile of the stored tensor.
        count: How many tiles there are.
        use: Bytes that one tile takes beside stored tensors.
        flops: Arithmetic of all tiles.
        moved: Bytes that all tiles read from outside, and the tensor's.
        seconds: Predicted time of all tiles.
    """

    tile: tuple[int, ...]
    count: int
    use: Use
    flops: int
    moved: int
    seconds: float


def choices_of(cone: Cone, device: Device, budget: int) -> tuple[Choice, ...]:
    """Return the tiles of a cone that take less memory than faster ones do.

    The first one is all of the tensor, if the cone has a rule at all; the others take
    at most `budget` bytes.
    """
    if not cone.tileable:
        return ()
    shape = cone.graph.tensors[cone.root].shape
    untiled = _choice(cone, shape, device)
    if untiled is None:
        return ()
    best = [untiled]
    usable = _fitting(cone, shape, device, budget)
    for choice in sorted(usable, key=lambda c: (c.seconds, c.use.total)):
        if not any(_needs_less(known.use, choice.use) for known in best):
            best.append(choice)
    return tuple(best)


def _fitting(
    cone: Cone, shape: tuple[int, ...], device: Device, budget: int
) -> Iterator[Choice]:
    for series in _series(cone, shape):
        for tile in series:
            choice = _choice(cone, tile, device)
            if choice is None or choice.count > MAX_TILES:
                break
            if choice.use.total <= budget:
                yield choice
            if choice.use.total * SMALL_ENOUGH <= budget:
                break


def _needs_less(known: Use, other: Use) -> bool:
    return known.arena <= other.arena and known.transient <= other.transient


def _series(cone: Cone, shape: tuple[int, ...]) -> Iterator[Iterator[tuple[int, ...]]]:
    """Tiles from large to small: bands along one dimension, blocks along two."""
    dims = [dim for dim in range(len(shape)) if _is_worth(cone, shape, dim)]
    powers = {dim: range(1, shape[dim].bit_length()) for dim in dims}
    for dim in dims:
        yield (_split(shape, {dim: power}) for power in powers[dim])
    for first, second in itertools.pairwise(dims):
        for more in (0, 1):
            yield (
                _split(shape, {first: power + more, second: power})
                for power in powers[second]
                if power + more in powers[first]
            )


def _is_worth(cone: Cone, shape: tuple[int, ...], dim: int) -> bool:
    if shape[dim] < 2:
        return False
    all_of_it, half = cone.trace(whole(shape)), cone.trace(_middle(shape, dim))
    if all_of_it is None or half is None:
        return False
    return half.use.total <= WORTH_SPLITTING * all_of_it.use.total


def _middle(shape: tuple[int, ...], dim: int) -> Box:
    box = list(whole(shape))
    box[dim] = (shape[dim] // 4, shape[dim] // 4 + shape[dim] // 2)
    return tuple(box)


def _split(shape: tuple[int, ...], powers: dict[int, int]) -> tuple[int, ...]:
    tile = list(shape)
    for dim, power in powers.items():
        size = -(-shape[dim] // 2**power)
        unit = 1
        while unit * 2 * ALIGNMENT_SHARE <= size:
            unit *= 2
        tile[dim] = min(shape[dim], -(-size // unit) * unit)
    return tuple(tile)


def _choice(cone: Cone, tile: tuple[int, ...], device: Device) -> Choice | None:
    """What a tile costs: time by the one in the middle, bytes by a corner as well."""
    shape = cone.graph.tensors[cone.root].shape
    counts = [-(-extent // size) for extent, size in zip(shape, tile, strict=True)]
    middle = cone.trace(_box(shape, tile, [number // 2 for number in counts]))
    corner = cone.trace(_box(shape, tile, [0] * len(counts)))
    if middle is None or corner is None:
        return None
    count = math.prod(counts)
    flops, traffic = middle.flops * count, middle.traffic * count
    seconds = flops / (device.peak_gflops * 1e9)
    seconds += traffic / (device.levels[0].bandwidth * 1e9) + SECONDS_A_TILE * count
    moved = middle.read_bytes * count + cone.graph.tensors[cone.root].nbytes
    # A tile is copied into its tensor; the whole is that.
    a, b = [t.use if count > 1 else t.use_in_place for t in (middle, corner)]
    use = Use(max(a.arena, b.arena), max(a.transient, b.transient))
    if sum(number > 1 for number in counts) > 1:
        seconds *= BLOCK_HANDICAP
    return Choice(tile, count, use, flops, moved, seconds)


def _box(shape: tuple[int, ...], tile: tuple[int, ...], numbers: Sequence[int]) -> Box:
    return tuple(
        (number * size, min(number * size + size, extent))
        for number, size, extent in zip(numbers, tile, shape, strict=True)
    )
