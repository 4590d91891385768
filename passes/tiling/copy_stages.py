"""Owns how many steps of the operands of products explicit memory holds at a time."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.tiling import warpgroups
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.matrix_units import warpgroups_for
from magweld.passes.tiling.placement import footprint_bytes, staged_steps
from magweld.passes.tiling.propagation import Tiles
from magweld.targets.device import Device, Level

# Most steps that are held; select-copy-stages takes another number.
MOST_STAGES = 4
# Tiles that a unit holds together, where there is room: while one waits for all of its
# threads, others compute.
_TILES_BESIDE = 2
# Bytes of a sum of products.
_SUM_BYTES = 4


@dataclass(frozen=True)
class CopyStages:
    """Steps that are held, all but one of them on their way.

    Attributes:
        count: How many, at least 2.
        footprint: Bytes that a tile takes then.
    """

    count: int
    footprint: int


@dataclass(frozen=True)
class Staging:
    """How operands of products come to explicit memory.

    Attributes:
        step: How much of a reduction is a step.
        kept: Bytes of sums that have a place there as planned, and are in registers.
    """

    step: int
    kept: int = 0


def staging(
    group: Group, tiles: Tiles, device: Device, level: Level, step: int
) -> Staging:
    """Return the steps of products: longer ones where warpgroups compute all of them.

    Args:
        group: The operators.
        tiles: What each of them computes.
        device: What runs them.
        level: The memory that holds the tiles.
        step: How much of a reduction is a step of other products.
    """
    products = [part for part in tiles.parts if part.model.factors]
    if not products or any(warpgroups_for(one, device) is None for one in products):
        return Staging(step)
    kept = sum(one.results * _SUM_BYTES for one in products)
    longer = Staging(warpgroups.STEP, kept)
    fits = copy_stages(group, tiles, level, longer.step, kept=kept) is not None
    return longer if fits else Staging(step)


def copy_stages(
    group: Group,
    tiles: Tiles,
    level: Level,
    step: int,
    most: int = MOST_STAGES,
    kept: int = 0,
) -> CopyStages | None:
    """Return how many steps are held; None without a product in several steps.

    As many as there are steps, and as have room: two tiles in the level where one of
    two stages leaves as much, else one tile.

    Args:
        group: The operators.
        tiles: What each of them computes.
        level: The memory that holds the tiles.
        step: How much of a reduction is a step.
        most: Most steps that are held.
        kept: Bytes that have a place there as planned, and are in registers.
    """
    found = [
        CopyStages(count, footprint_bytes(group, tiles, level, step, count))
        for count in range(2, min(most, staged_steps(group, tiles, step)) + 1)
    ]
    for room in (level.capacity // _TILES_BESIDE, level.capacity):
        fitting = [
            one
            for one in found
            if one.footprint - kept <= room and one.footprint <= level.capacity
        ]
        if fitting:
            return fitting[-1]
    return None
