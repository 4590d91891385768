"""Owns how many steps of the operands of products explicit memory holds at a time."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.tiling import warpgroups
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.matrix_units import MOST_SUMS, warpgroups_for
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
        planned: Those of its plan, where sums in registers have a place as well.
    """

    count: int
    footprint: int
    planned: int = 0


@dataclass(frozen=True)
class Staging:
    """How operands of products come to explicit memory.

    Attributes:
        step: How much of a reduction is a step.
        kept: Bytes of sums that have a place there as planned, and are in registers.
        is_alone: Whether a unit has no registers for another tile.
    """

    step: int
    kept: int = 0
    is_alone: bool = False


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
    kept, is_alone = 0, False
    products = [node for node, one in enumerate(tiles.parts) if one.model.factors]
    for node in products:
        results = tiles.parts[node].results
        shared = warpgroups_for(tiles.parts[node], device)
        if shared is None:
            return Staging(step)
        # Sums that nothing reads have no place.
        kept += results * _SUM_BYTES if group.consumers(node) else 0
        lanes = shared[0] * shared[1] * device.warp
        is_alone = is_alone or results > MOST_SUMS * lanes
    longer = Staging(warpgroups.STEP, kept, is_alone)
    fits = products and copy_stages(group, tiles, level, longer) is not None
    return longer if fits else Staging(step)


def copy_stages(
    group: Group,
    tiles: Tiles,
    level: Level,
    staged: Staging,
    most: int = MOST_STAGES,
) -> CopyStages | None:
    """Return how many steps are held; None without a product in several steps.

    As many as there are steps, and as have room: two tiles in the level where one of
    two stages leaves as much, and registers have room for two, else one tile.

    Args:
        group: The operators.
        tiles: What each of them computes.
        level: The memory that holds the tiles.
        staged: The steps.
        most: Most steps that are held.
    """
    held = range(2, min(most, staged_steps(group, tiles, staged.step)) + 1)
    sizes = {n: footprint_bytes(group, tiles, level, staged.step, n) for n in held}
    planned = [size for size in sizes.values() if size <= level.capacity]
    beside = 0 if staged.is_alone else level.capacity // _TILES_BESIDE
    for room in (beside, level.capacity):
        fitting = [n for n, size in sizes.items() if size - staged.kept <= room]
        if fitting and planned:
            size = sizes[fitting[-1]]
            return CopyStages(fitting[-1], size - staged.kept, min(size, planned[-1]))
    return None


def placed_stages(
    group: Group, tiles: Tiles, level: Level, step: int, stages: int
) -> int:
    """Return how many of the steps that are held have a place in a plan.

    Sums that will be in registers have one there: rings take theirs in the kernel.
    """
    while stages > 1:
        if footprint_bytes(group, tiles, level, step, stages) <= level.capacity:
            break
        stages -= 1
    return stages
