"""Owns how many steps of the operands of products explicit memory holds at a time."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.placement import footprint_bytes, staged_steps
from magweld.passes.tiling.propagation import Tiles
from magweld.targets.device import Level

# Most steps that are held; select-copy-stages takes another number.
MOST_STAGES = 4
# Tiles that a unit holds together, where there is room: while one waits for all of its
# threads, others compute.
_TILES_BESIDE = 2


@dataclass(frozen=True)
class CopyStages:
    """Steps that are held, all but one of them on their way.

    Attributes:
        count: How many, at least 2.
        footprint: Bytes that a tile takes then.
    """

    count: int
    footprint: int


def copy_stages(
    group: Group, tiles: Tiles, level: Level, step: int, most: int = MOST_STAGES
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
    """
    found = [
        CopyStages(count, footprint_bytes(group, tiles, level, step, count))
        for count in range(2, min(most, staged_steps(group, tiles, step)) + 1)
    ]
    for room in (level.capacity // _TILES_BESIDE, level.capacity):
        fitting = [one for one in found if one.footprint <= room]
        if fitting:
            return fitting[-1]
    return None
