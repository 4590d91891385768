"""Owns the walk from the fastest candidate to tiles that candidates were thinned by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import MAX_CANDIDATES, root_sizes
from magweld.passes.tiling.trials import Trials, may_be_ragged

Tile = tuple[int, ...]


def refined(plan: Plan, trials: Trials, gain: float) -> Iterator[Plan]:
    """Walk to faster neighbours of a plan as long as there are any, yield each.

    There is nothing to walk to where all sizes were candidates, and from tiles that
    overlap.

    Args:
        plan: Where the walk begins.
        trials: What tries tiles for its group.
        gain: Share of its time that a step has to save.
    """
    choices = root_sizes(trials.group.root, ragged=may_be_ragged(trials.device))
    pairs = zip(plan.tile, choices, strict=True)
    if math.prod(map(len, choices)) <= MAX_CANDIDATES or any(
        size not in sizes for size, sizes in pairs
    ):
        return
    while better := _better(plan, choices, trials, gain):
        plan = better
        yield plan


def _better(
    plan: Plan, choices: Sequence[Tile], trials: Trials, gain: float
) -> Plan | None:
    """Return the fastest neighbour that saves enough, None if there is none."""
    limit = plan.cost.seconds * (1 - gain)
    for tiles in (along(plan.tile, choices), across(plan.tile, choices)):
        found = (trials.plan_within(tile, plan.tiles.blocks, limit) for tile in tiles)
        plans = [one for one in found if isinstance(one, Plan)]
        best = min(plans, key=lambda one: one.cost.seconds, default=plan)
        if best.cost.seconds < limit:
            return best
    return None


def along(tile: Tile, choices: Sequence[Tile]) -> Iterator[Tile]:
    """Yield tiles of the next size or the size before along one loop.

    Args:
        tile: The tile.
        choices: The sizes along each loop, in rising order.
    """
    for loop, sizes in enumerate(choices):
        at = sizes.index(tile[loop])
        for size in sizes[max(0, at - 1) : at] + sizes[at + 1 : at + 2]:
            yield (*tile[:loop], size, *tile[loop + 1 :])


def across(tile: Tile, choices: Sequence[Tile]) -> Iterator[Tile]:
    """Yield tiles of the next size along one loop and the size before along another.

    They need about as much memory: where it is full there are no others.

    Args:
        tile: The tile.
        choices: The sizes along each loop, in rising order.
    """
    at = [sizes.index(size) for sizes, size in zip(choices, tile, strict=True)]
    for up, down in itertools.permutations(range(len(tile)), 2):
        if at[up] + 1 < len(choices[up]) and at[down]:
            moved = list(tile)
            moved[up] = choices[up][at[up] + 1]
            moved[down] = choices[down][at[down] - 1]
            yield tuple(moved)
