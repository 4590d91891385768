"""Owns the trial of one tile in the levels that may hold it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
    cost_of,
    with_copies,
    work_of,
)
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loads_in_flight import is_streamed, waited_seconds
from magweld.passes.tiling.matrix_units import copies_ahead
from magweld.passes.tiling.placement import (
    footprint_bytes,
    staged_steps,
    tile_bytes,
    tile_bytes_between,
)
from magweld.passes.tiling.propagation import Refusal, Tiles
from magweld.passes.tiling.register_streams import register_stream, stream_slots
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import LAUNCH_SECONDS, Device, Level, LevelKind

# Share of a cache that a tile may fill: the rest goes to what streams past it.
CACHE_SHARE = 0.5


@dataclass
class LevelTrial:
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
            step = staged.step
            footprint = footprint_bytes(group, tiles, level, step)
            price = replace(price, footprint=footprint)
            stages = copy_stages(group, tiles, level, staged)
            steps = staged_steps(group, tiles, step)
            price = with_copies(price, tiles, level, steps, stages)
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
            slots=stream_slots(group, tiles, device) * tiles.grid,
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
