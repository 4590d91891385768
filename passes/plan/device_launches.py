"""Owns what calls of kernels take on a GPU: launches of their own, or one of all.

A launch takes some microseconds in any case. Blocks of different kernels run side by
side where the units have room for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, scf
from magweld.dialects.tile_graph import reports_of
from magweld.passes.ir.utils import forall_grid, operations_of
from magweld.passes.tiling.cost import waves
from magweld.passes.tiling.loads_in_flight import UNIT_THREADS
from magweld.passes.tiling.matrix_units import BLOCK_THREADS
from magweld.targets.device import LAUNCH_SECONDS, Device


@dataclass(frozen=True)
class BlockWork:
    """What a call has to do.

    Attributes:
        seconds: How long it takes alone, once it has started.
        moving: How much of that the memory is busy which all units share.
        blocks: How many blocks it has.
        beside: How many of them a unit has room for.
        pointers: How many pointers a launch passes for it.
    """

    seconds: float
    moving: float
    blocks: int
    beside: int
    pointers: int

    @property
    def share(self) -> float:
        """Its share of the work of a launch, in seconds."""
        return self.seconds


@dataclass(frozen=True)
class BlockLaunching:
    """What it takes to run calls on a GPU.

    Attributes:
        device: The GPU.
    """

    device: Device

    def work(self, call: Any, kernel: Any, members: int) -> BlockWork | None:
        """Return what a call does; None where that is not predicted.

        Args:
            call: The call.
            kernel: The function that it runs.
            members: How many times.
        """
        reports = reports_of(kernel)
        blocks = _blocks_of(kernel)
        if "predicted_seconds" not in reports or blocks is None:
            return None
        predicted = float(ir.FloatAttr(reports["predicted_seconds"]).value)
        units, every = self.device.units, blocks * members
        fuller = waves(every, units) / waves(blocks, units)
        alone = max(0.0, predicted - LAUNCH_SECONDS) * fuller * members
        return BlockWork(
            seconds=alone,
            moving=min(alone, self._moving(reports) * members),
            blocks=every,
            beside=self._beside(reports),
            pointers=len(kernel.type.inputs) * members,
        )

    def apart(self, works: Sequence[BlockWork]) -> float:
        """Return how long calls take one after another, each as a launch."""
        return sum(self.device.launch_seconds + work.seconds for work in works)

    def together(self, works: Sequence[BlockWork]) -> float:
        """Return how long they take as one launch, infinity where they are in the way.

        Each block of it has the shared memory of the kernel with most. Where not all
        blocks are there at one time, that leaves room for fewer blocks of others.
        """
        beside = min(work.beside for work in works)
        if sum(work.blocks for work in works) <= self.device.units * beside:
            moving = sum(work.moving for work in works)
            longest = max(work.seconds for work in works)
            return self.device.launch_seconds + max(moving, longest)
        if any(work.beside > beside for work in works):
            return math.inf
        return self.device.launch_seconds + sum(work.seconds for work in works)

    def _moving(self, reports: dict[str, Any]) -> float:
        """Return how long the memory is busy that is outside of the tiles."""
        if "moved_after" not in reports:
            return 0.0
        moved = {
            entry.name: entry.attr for entry in ir.DictAttr(reports["moved_after"])
        }
        own = str(ir.StringAttr(reports["level"]).value)
        return max(
            (
                int(ir.IntegerAttr(moved[level.name]).value) / (level.bandwidth * 1e9)
                for level in self.device.levels
                if level.name in moved and level.name != own
            ),
            default=0.0,
        )

    def _beside(self, reports: dict[str, Any]) -> int:
        """Return how many blocks of a kernel a unit has room for."""
        most = max(1, UNIT_THREADS // BLOCK_THREADS)
        footprint = int(ir.IntegerAttr(reports["footprint"]).value)
        capacity = self.device.level(
            str(ir.StringAttr(reports["level"]).value)
        ).capacity
        if not footprint or not capacity:
            return most
        return max(1, min(most, capacity // footprint))


def _blocks_of(kernel: Any) -> int | None:
    """Return how many blocks a tiled kernel has, None where calls tell."""
    grids = [
        forall_grid(op) for op in operations_of(kernel, scf.ForallOp) if _is_outer(op)
    ]
    if len(grids) != 1 or grids[0] is None:
        return None
    return math.prod(count for _, _, count in grids[0])


def _is_outer(op: Any) -> bool:
    return str(op.operation.parent.name) == "func.func"
