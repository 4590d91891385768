"""Owns tile_graph.for_tiles."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.grid import grid_parts
from magweld.dialects.tile_graph.plan import (
    STORE,
    barriers_needed,
    is_allowed_in_plan,
    is_beside,
    lasting_violations,
    lifetime_violations,
    place_of,
    plan_operations,
)
from magweld.dialects.tile_graph.structure import YIELD
from magweld.dialects.tile_graph.verification import (
    found_level,
    nontemporal_violations,
    parent_violations,
    report,
    stage_violations,
)
from magweld.targets.device import Level, LevelKind


@read_by_position
class ForTilesOp(Operation, name="for_tiles"):
    """The execution plan of a subgraph: what is done for each tile of its results.

    The arguments of its block say where the tile is along each loop that is split, in
    steps from zero. Tiles may run in any order and at one time. What is read are the
    tensors that its region loads, every result is stored by one operation of a block.

    Along a loop whose step does not divide the extent the last tile is smaller. The
    tiles of every shape have a block of their own, in the order of `grid_parts`: the
    full ones first. Where tiles are `overlapping` it is a full one as well, which ends
    with the extent: what lies in two tiles both compute, and the former stores.

    An extent that a call tells (`runtime`) is the number that stands for it, see
    `magweld.artifact.StandIns`. Steps along it are powers of two, and what the step
    leaves has blocks of smaller steps down to one.

    Attributes:
        subgraph_name: Name in reports.
        level: Level that holds the tiles.
        extents: Of the loops that are split.
        steps: Size of the tile along them.
        operators: Names of the operators, in the order of the subgraph.
        footprint: Optional; bytes of the level that the places of a tile may take.
        copy_stages: Optional; how many steps of staged operands their places hold.
        nontemporal: Optional; numbers of the results that are stored past the caches.
        subgroup_rows: Optional; rows that a subgroup has in registers.
        runtime: Optional; the loop whose extent a call tells.
        overlapping: Optional; whether all tiles have the size of their steps.
    """

    first: ext.Result[Any]
    second: ext.Result[Any] | None
    subgraph_name: ir.StringAttr
    level: ir.StringAttr
    extents: ir.ArrayAttr
    steps: ir.ArrayAttr
    operators: ir.ArrayAttr
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        """Check the loops, what is stored, and where tiles lie how long."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, ("func.func",))
        yield from self._block_violations()
        yield from self._loop_violations()
        yield from self._store_violations()
        name = self.level.value
        device = yield from found_level(self, name)
        if device is None:
            return
        level = device.level(name)
        yield from self._place_violations(level)
        yield from stage_violations(self, level)
        yield from nontemporal_violations(self, level)
        for block in self._blocks():
            yield from lifetime_violations(block)
            yield from lasting_violations(block)
            for op in barriers_needed(block, name) if is_shared(level) else []:
                where = f"before '{op.name}' of {op.location}"
                yield f"expected a 'tile_graph.barrier' {where}"

    def _blocks(self) -> list[Any]:
        return list(self.operation.regions[0].blocks)

    def _block_violations(self) -> Iterator[str]:
        for block in self._blocks():
            nested = list(block.operations)
            if not nested or nested[-1].operation.name != YIELD:
                yield f"expected its block to end in '{YIELD}'"
            names = (op.name for op in plan_operations(block))
            for name in (name for name in names if not is_allowed_in_plan(name)):
                yield f"expected its body to hold the ops of a plan, got '{name}'"

    def _loop_violations(self) -> Iterator[str]:
        extents = [extent.value for extent in self.extents]
        steps = [step.value for step in self.steps]
        for block in self._blocks():
            arguments = block.arguments
            positions = [a for a in arguments if isinstance(a.type, ir.IndexType)]
            if not len(extents) == len(steps) == len(arguments) == len(positions):
                yield (
                    f"expected an extent, a step and an argument of type index for "
                    f"each loop, got {len(extents)}, {len(steps)} and {len(positions)}"
                )
                return
        wrong = [(e, s) for e, s in zip(extents, steps, strict=False) if not 0 < s <= e]
        for extent, step in wrong:
            yield f"expected steps within extents, got {step} of {extent}"
        if not wrong:
            yield from self._runtime_violations(steps)
            runtime, overlapping = runtime_loop(self), has_overlapping_tiles(self)
            if runtime and overlapping:
                yield "expected no loop in 'runtime' where tiles are 'overlapping'"
            parts = len(grid_parts(extents, steps, runtime, overlapping=overlapping))
            if len(self._blocks()) != parts:
                yield (
                    f"expected a block for each of {parts} shapes of tiles, got "
                    f"{len(self._blocks())}"
                )

    def _runtime_violations(self, steps: list[int]) -> Iterator[str]:
        loops = runtime_loop(self)
        if len(loops) > 1 or any(not 0 <= loop < len(steps) for loop in loops):
            yield f"expected one of its loops in 'runtime', got {list(loops)}"
            return
        for step in (steps[loop] for loop in loops):
            if step & (step - 1):
                yield f"expected a power of two along the loop in 'runtime', got {step}"

    def _store_violations(self) -> Iterator[str]:
        for block in self._blocks():
            stored = [
                op.attributes["result"].value
                for op in block.operations
                if op.operation.name == STORE
            ]
            if sorted(stored) != list(range(len(self.operation.results))):
                yield f"expected each result to be stored once, got {stored}"

    def _place_violations(self, level: Level) -> Iterator[str]:
        attributes = self.operation.attributes
        room = level.capacity
        if "footprint" in attributes:
            room = attributes["footprint"].value
            if level.capacity and room > level.capacity:
                yield (
                    f"expected its footprint to fit into level '{level.name}' of "
                    f"{level.capacity} bytes, got {room} bytes"
                )
        nested = (op for block in self._blocks() for op in plan_operations(block))
        for op in nested:
            place = place_of(op)
            if place is None:
                continue
            inside = place.level == level.name
            if not inside and not is_beside(op):
                yield f"expected places in level '{level.name}', got {place}"
            if inside and "footprint" in attributes and place.end > room:
                yield f"expected places within {room} bytes, got {place}"


def has_overlapping_tiles(plan: Any) -> bool:
    """Tell whether all tiles of a plan have the size of its steps."""
    return "overlapping" in plan.operation.attributes


def runtime_loop(plan: Any) -> tuple[int, ...]:
    """Return the number of the loop of a plan whose extent a call tells, if any."""
    attributes = plan.operation.attributes
    if "runtime" not in attributes:
        return ()
    return tuple(loop.value for loop in attributes["runtime"])


def is_shared(level: Level) -> bool:
    """Return whether the units that work on a tile share what lies in a level."""
    return level.kind is LevelKind.EXPLICIT
