"""Owns the trial of one tile: what a group costs with it, or why it cannot have it.

Trials end as soon as it is known that a tile will not be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from magweld.dialects.tile_graph.grid import grid_parts
from magweld.passes.tiling.copy_stages import (
    MOST_STAGES,
    CopyStages,
    copy_stages,
    staging,
)
from magweld.passes.tiling.cost import (
    OVERLAP_LOSS,
    Cost,
    Work,
    arithmetic_seconds,
    cost_of,
    fixed_seconds,
    with_copies,
    work_of,
)
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loads_in_flight import is_streamed, waited_seconds
from magweld.passes.tiling.matrix_units import copies_ahead
from magweld.passes.tiling.needs import Needs
from magweld.passes.tiling.placement import (
    footprint_bytes,
    staged_steps,
    tile_bytes,
    tile_bytes_between,
)
from magweld.passes.tiling.propagation import Needed, Propagation, Refusal, Tiles
from magweld.passes.tiling.register_streams import register_stream, stream_slots
from magweld.passes.tiling.stream import Blocks
from magweld.passes.tiling.tile_sizes import MOST_SHAPES
from magweld.targets.device import LAUNCH_SECONDS, Device, Level, LevelKind

# Arithmetic done over arithmetic needed that a plan may have.
MAX_RECOMPUTE = 1.25
# Share of a cache that a tile may fill: the rest goes to what streams past it.
CACHE_SHARE = 0.5
# By how much two sums of the same numbers may differ.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Plan:
    """A tile for a group.

    Attributes:
        level: Name of the level that holds the reuse tiles.
        tile: Result tile of the root.
        tiles: What every node computes for it.
        step: Reduction step of staged operands.
        cost: Predicted cost.
    """

    level: str
    tile: tuple[int, ...]
    tiles: Tiles
    step: int
    cost: Cost


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
        trial = _Trial(self.group, self.device, tile, tiles, self._step)
        found = trial.run(self.levels, limit)
        if not isinstance(found, Plan):
            return found
        return self._refuse_rest(tile, blocks) or found

    def _refuse_rest(
        self, tile: tuple[int, ...], blocks: Blocks | None
    ) -> Refusal | None:
        """Why there cannot be smaller tiles at the end, where there have to be."""
        whole = self.group.root.whole_tile
        parts = grid_parts(whole, tile, self.group.root.runtime)
        shapes = len(parts)
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


@dataclass
class _Trial:
    """One tile in the levels that may hold it."""

    group: Group
    device: Device
    tile: tuple[int, ...]
    tiles: Tiles
    step: int
    _sizes: dict[LevelKind, int] = field(default_factory=dict)

    def run(self, levels: Sequence[Level], limit: float) -> Plan | Refusal | None:
        """Return the fastest plan, why there is none, or None beyond the limit."""
        name = self.device.name
        refusal = Refusal("no-level", f"{name} has no level for reuse tiles")
        best: Plan | None = None
        is_slow = False
        for level in levels:
            in_registers = level.kind is LevelKind.EXPLICIT and self.tiles.blocks
            found = (self._in_registers if in_registers else self._in_level)(
                level, limit
            )
            if isinstance(found, Refusal):
                refusal = min(refusal, found, key=lambda one: one.excess)
            elif found is None:
                is_slow = True
            elif best is None or found.cost.seconds < best.cost.seconds:
                best, limit = found, found.cost.seconds
        if best is None and is_slow:
            return None
        return refusal if best is None else best

    def _in_level(self, level: Level, limit: float) -> Plan | Refusal | None:
        if limit == math.inf:  # no cost is too high: look first whether there is room
            refusal = self._refusal(level)
            if refusal is not None:
                return refusal
        elif self._has_no_room(level):
            return None  # others have a plan: how much is missing is of no interest
        work, group, tiles = self._work, self.group, self.tiles
        is_copied = level.kind is LevelKind.EXPLICIT and bool(work.loaded)
        is_copied = is_copied and copies_ahead(group.nodes, self.device)
        # The more steps are held, the more is hidden: first as if all had room.
        loss = OVERLAP_LOSS / (MOST_STAGES if is_copied else 1)
        price = cost_of(work, group, tiles, self.device, level, limit, loss)
        step = self.step
        if price is None:
            return None
        refusal = self._refusal(level)
        if refusal is not None:
            return refusal
        if is_copied:
            staged = staging(group, tiles, self.device, level, step)
            step, kept = staged.step, staged.kept
            footprint = footprint_bytes(group, tiles, level, step)
            price = replace(price, footprint=footprint)
            stages = copy_stages(group, tiles, level, step, kept=kept)
            steps = staged_steps(group, tiles, step)
            price = with_copies(price, tiles, level, steps, stages, kept)
        else:
            price = self._waiting(price, level)
        return Plan(level.name, self.tile, self.tiles, step, price)

    def _in_registers(self, level: Level, limit: float) -> Plan | Refusal | None:
        """The plan of a stream whose tiles lie in registers, blocks in a level."""
        group, tiles, device = self.group, self.tiles, self.device
        found = register_stream(group, tiles, device)
        if isinstance(found, Refusal):
            return found
        ahead = copies_ahead(group.nodes, device)
        count = found.stages(level, copies_ahead=ahead)
        footprint = found.block_bytes * count
        if footprint > level.capacity:
            detail = f"{footprint} bytes needed in {level.name}, {level.capacity} there"
            return Refusal("footprint", detail, footprint / max(level.capacity, 1))
        work = replace(
            self._work,
            reuse=0,
            waiting=0,
            slots=stream_slots(tiles, device) * tiles.grid,
            loaded=found.loaded * tiles.grid,
            accessed=0,
        )
        loss = OVERLAP_LOSS / count
        price = cost_of(work, group, tiles, device, level, limit, loss)
        if price is None:
            return None
        if ahead:
            price = replace(price, footprint=footprint)
            stages = CopyStages(count, footprint)
            steps = tiles.blocks.count if tiles.blocks is not None else 1
            price = with_copies(price, tiles, level, steps, stages)
        return Plan(level.name, self.tile, tiles, self.step, price)

    def _waiting(self, price: Cost, level: Level) -> Cost:
        """Return the cost of tiles that threads stream, whose loads are waited for."""
        if level.kind is LevelKind.CACHE or not is_streamed(self.group, self.device):
            return price
        loaded = self._work.reads.by_tiles(self.device.levels[0].transaction)
        waited = waited_seconds(self.group, self.tiles, self.device, loaded)
        return replace(price, seconds=max(price.seconds, waited + LAUNCH_SECONDS))

    def _has_no_room(self, level: Level) -> bool:
        """Whether it is known without placing tiles that a level has no room."""
        is_cache = level.kind is LevelKind.CACHE and bool(level.capacity)
        return is_cache and self._between[0] > _room(level)

    def _refusal(self, level: Level) -> Refusal | None:
        room = _room(level)
        if not level.capacity:
            return None
        if level.kind is LevelKind.CACHE and self._between[1] <= room:
            return None
        footprint = self._tile_bytes(level)
        if footprint <= room:
            return None
        detail = f"{footprint} bytes needed in {level.name}, {room} there"
        return Refusal("footprint", detail, footprint / max(room, 1))

    @cached_property
    def _work(self) -> Work:
        return work_of(self.group, self.tiles, self.device)

    @cached_property
    def _between(self) -> tuple[int, float]:
        return tile_bytes_between(self.group, self.tiles)

    def _tile_bytes(self, level: Level) -> int:
        """Bytes that the tiles need, which levels of one kind agree on."""
        if level.kind not in self._sizes:
            size = tile_bytes(self.group, self.tiles, level, self.step)
            self._sizes[level.kind] = size
        return self._sizes[level.kind]


def _room(level: Level) -> int:
    """Bytes of a level that a tile may fill."""
    share = CACHE_SHARE if level.kind is LevelKind.CACHE else 1
    return int(level.capacity * share)
