"""Owns trials of tiles: what a group costs with one, or why it cannot have it.

Trials end as soon as it is known that a tile will not be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from magweld.dialects.tile_graph.grid import grid_parts
from magweld.passes.tiling.cost import (
    arithmetic_seconds,
    fixed_seconds,
)
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.level_trial import LevelTrial
from magweld.passes.tiling.needs import Needs
from magweld.passes.tiling.placement import (
    footprint_bytes,
)
from magweld.passes.tiling.propagation import Needed, Propagation, Refusal
from magweld.passes.tiling.stream import Blocks
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import MOST_SHAPES, shapes_of_tiles
from magweld.targets.device import Device, Level

# Arithmetic done over arithmetic needed that a plan may have.
MAX_RECOMPUTE = 1.25
# By how much two sums of the same numbers may differ.
ROUNDING = 1e-9


def may_be_ragged(device: Device) -> bool:
    """Return whether sizes of tiles need not divide extents.

    They do where threads share a tile: they would have to share several shapes.
    """
    return device.threads == 1


class Trials:
    """Tries tiles for one group.

    Attributes:
        group: The operators.
        device: What runs them.
        levels: Of the device, those that may hold tiles.
    """

    def __init__(
        self,
        group: Group,
        device: Device,
        levels: Sequence[Level],
        step: int,
        needs: Needs,
    ) -> None:
        """Say what tiles are tried for.

        Args:
            group: The operators.
            device: What runs them.
            levels: Of the device, those that may hold tiles.
            step: Reduction step of staged operands.
            needs: What is known of operators.
        """
        self.group = group
        self.device = device
        self.levels = levels
        self._step = step
        self._needs = needs
        self._units = {max(1, level.units) for level in levels}
        self._propagations: list[tuple[Blocks | None, Propagation]] = []

    def plan(self, tile: tuple[int, ...], blocks: Blocks | None) -> Plan | Refusal:
        """Return the plan with a tile, or why there is none."""
        found = self.plan_within(tile, blocks, math.inf)
        assert found is not None, "nothing is beyond infinity"
        return self.placed(found) if isinstance(found, Plan) else found

    def placed(self, plan: Plan) -> Plan:
        """Return a plan of `plan_within` with its footprint."""
        level = next(level for level in self.levels if level.name == plan.level)
        footprint = footprint_bytes(self.group, plan.tiles, level, plan.step)
        return replace(plan, cost=replace(plan.cost, footprint=footprint))

    def plan_within(
        self, tile: tuple[int, ...], blocks: Blocks | None, limit: float
    ) -> Plan | Refusal | None:
        """Return the plan with a tile, or why there is none.

        None if it is known to take longer than a number of seconds, whether or not
        there is one. Its footprint may be left at 0: `placed` finds it, which takes as
        long as all of the rest.
        """
        started = self._least_seconds(tile)
        if started > limit:
            return None
        propagation = self._propagation(blocks)
        needed = propagation.needed(tile, MAX_RECOMPUTE)
        if isinstance(needed, Refusal):
            return needed
        if limit < math.inf:
            least = started + self._arithmetic_seconds(needed)
            if least * (1 - ROUNDING) > limit:
                return None  # before it is known what it reads and writes
        tiles = propagation.found(needed)
        trial = LevelTrial(self.group, self.device, tile, tiles, self._step)
        found = trial.run(self.levels, limit)
        if not isinstance(found, Plan):
            return found
        return self._refuse_rest(tile, blocks) or found

    def _refuse_rest(
        self, tile: tuple[int, ...], blocks: Blocks | None
    ) -> Refusal | None:
        """Why there cannot be smaller tiles at the end, where there have to be.

        Tiles of streams that threads share overlap there.
        """
        if blocks is not None and not may_be_ragged(self.device):
            return None
        whole = self.group.root.whole_tile
        parts = grid_parts(whole, tile, self.group.root.runtime)
        shapes = shapes_of_tiles(whole, tile, self.group.root.runtime)
        if shapes == 1:
            return None
        allowed = MOST_SHAPES if may_be_ragged(self.device) else 1
        if shapes > allowed:
            detail = f"tiles {tile} of {whole} have {shapes} shapes, {allowed} allowed"
            return Refusal("ragged-tile", detail)
        for part in parts[1:]:
            sizes = tuple(loop.step for loop in part)
            found = self._propagation(blocks).tiles(sizes)
            if isinstance(found, Refusal):
                return found
        return None

    def _propagation(self, blocks: Blocks | None) -> Propagation:
        for known, propagation in self._propagations:
            if known is blocks:
                return propagation
        propagation = Propagation(self.group, blocks, self._needs)
        self._propagations.append((blocks, propagation))
        return propagation

    def _arithmetic_seconds(self, needed: Needed) -> float:
        """What arithmetic takes at least, in the level where it takes the least."""
        seconds = [
            arithmetic_seconds(needed.needs, needed.grid, self.device, one)
            for one in self._units
        ]
        return min(seconds, default=0.0)

    def _least_seconds(self, tile: tuple[int, ...]) -> float:
        """What starting all tiles takes, whatever they do."""
        extents = self.group.root.grid_extents
        rounds = [-(-e // size) for e, size in zip(extents, tile, strict=True)]
        return fixed_seconds(math.prod(rounds), max(self._units, default=1))
