"""Owns the plan of a subgraph: what is done for each tile, and where tiles lie."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    TileAttr,
    barriers_needed,
    build_barrier,
    build_for_tiles,
    grid_parts,
    operators_of,
    reports_of,
    yield_values,
)
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.stream_marks import marked_blocks
from magweld.passes.ir.utils import located_error
from magweld.passes.plan.stream_body import emit_stream
from magweld.passes.plan.tile_emitter import TileEmitter
from magweld.passes.plan.tile_memory import TileMemory
from magweld.passes.plan.tile_slices import GridRows, TileSlicer
from magweld.passes.tiling.clamps import Clamps
from magweld.passes.tiling.copy_stages import placed_stages
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loop_nests import LoopNests
from magweld.passes.tiling.placement import Placement, nests_of, place_tile
from magweld.passes.tiling.policy import staged_step
from magweld.passes.tiling.propagation import Refusal, Tiles, propagate
from magweld.passes.tiling.stream import Blocks
from magweld.targets.device import Device, LevelKind


def build_plan(subgraph: Any, device: Device) -> Any:
    """Build the plan of a subgraph at the insertion point and return it.

    Args:
        subgraph: A `tile_graph.subgraph` with a `tile`.
        device: What it is planned for.

    Raises:
        PassError: There is no tile, or it does not fit the operators.
    """
    if "tile" not in subgraph.attributes:
        raise located_error(subgraph, "expected attribute 'tile', see select-tiles")
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    tile = TileAttr(subgraph.attributes["tile"]).sizes
    blocks = marked_blocks(subgraph, body, group)
    if isinstance(blocks, Refusal):
        raise located_error(subgraph, f"{blocks.rule}: {blocks.detail}")
    sizes = dict(zip(group.root.parallel, tile, strict=True))
    split = {i: n for i, n in sizes.items() if n < group.root.extents[i]}
    whole = [i for i in group.root.runtime if group.root.parallel[i] not in split]
    if whole or len(group.root.runtime) > 1:
        raise located_error(
            subgraph,
            "runtime-extent: expected one loop over tiles along extents that a call "
            f"tells, got tiles {list(tile)} of {list(group.root.whole_tile)}",
        )
    overlapping = _overlap(group, tile, blocks, device)
    parts = grid_parts(
        *(group.root.whole_tile, tile, group.root.runtime), overlapping=overlapping
    )
    if len(parts) > 1 and device.threads > 1:
        raise located_error(
            subgraph,
            f"expected the sizes of {list(tile)} to divide the extents "
            f"{list(group.root.whole_tile)}: units of {device.name} share a tile",
        )
    plan = _plan_op(subgraph, group, split, overlapping=overlapping)
    nests = nests_of(group, blocks)
    # Tiles that are smaller lie in the places of full ones.
    memory = _memory(
        subgraph, device, group, _propagated(subgraph, group, tile, blocks)
    )
    for block, part in zip(plan.operation.regions[0].blocks, parts, strict=True):
        own = tuple(loop.step for loop in part)
        tiles = _propagated(subgraph, group, own, blocks)
        ivs = dict(zip(split, block.arguments, strict=True))
        clamps = Clamps(len(group.root.extents), tiles.clamps)
        slicer = TileSlicer(ivs, clamps, _rows(group, own))
        with ir.InsertionPoint(block):
            emitter = TileEmitter(subgraph, body, slicer, memory, nests)
            if blocks is None:
                _emit(emitter, nests, tiles)
            else:
                emit_stream(emitter, slicer, group, own, blocks)
            yield_values([])
        if device.level(memory.level).kind is LevelKind.EXPLICIT:
            for op in barriers_needed(block, memory.level):
                with ir.InsertionPoint(op), op.location:
                    build_barrier()
    return plan


def _propagated(
    subgraph: Any, group: Group, tile: tuple[int, ...], blocks: Blocks | None
) -> Tiles:
    tiles = propagate(group, tile, blocks)
    if isinstance(tiles, Refusal):
        raise located_error(subgraph, f"{tiles.rule}: {tiles.detail}")
    return tiles


def _rows(group: Group, tile: tuple[int, ...]) -> GridRows | None:
    """Return the loop over tiles whose extent a call tells, if there is one."""
    for position in group.root.runtime:
        extent = group.root.whole_tile[position]
        return GridRows(group.root.parallel[position], extent, tile[position])
    return None


def _emit(emitter: TileEmitter, nests: LoopNests, tiles: Tiles) -> None:
    """Compute the loop nests one after another, each tile until its last reader."""
    for number, box in enumerate(tiles.boxes):
        emitter.emit(number, box)
        emitter.store(number)
        for producer in nests.ending_at(number):
            emitter.release(producer)
    emitter.live.release_all_but()


def _overlap(
    group: Group, tile: tuple[int, ...], blocks: Blocks | None, device: Device
) -> bool:
    """Tell whether tiles are to overlap, so that all of them have one size.

    Those of streams may: what lies in two of them is the same number in both.
    """
    if blocks is None or device.threads == 1 or group.root.runtime:
        return False
    pairs = zip(group.root.whole_tile, tile, strict=True)
    return any(extent % size for extent, size in pairs)


def _plan_op(
    subgraph: Any, group: Group, split: dict[int, int], *, overlapping: bool
) -> Any:
    names = [op.attributes["op_name"] for op in operators_of(subgraph)]
    attributes = {
        **reports_of(subgraph),
        "operators": ir.ArrayAttr.get(names),
        "subgraph_name": subgraph.attributes["subgraph_name"],
    }
    extents = [group.root.extents[loop] for loop in split]
    types = [value.type for value in subgraph.results]
    loops = [group.root.parallel[position] for position in group.root.runtime]
    runtime = [number for number, loop in enumerate(split) if loop in loops]
    steps = list(split.values())
    return build_for_tiles(
        *(types, extents, steps, attributes, runtime), overlapping=overlapping
    )


def _memory(subgraph: Any, device: Device, group: Group, tiles: Tiles) -> TileMemory:
    level = ir.StringAttr(subgraph.attributes["level"]).value
    outermost = device.levels[0]
    cached = device.threads == 1
    if level == outermost.name:
        # Nothing is brought nearer than it is.
        return TileMemory(level, Placement(), outermost, cached, level)
    attributes = subgraph.attributes
    decided = "reduction_step" in attributes
    step = attributes["reduction_step"].value if decided else staged_step(group)
    stages = attributes["copy_stages"].value if "copy_stages" in attributes else 1
    placed = placed_stages(group, tiles, device.level(level), step, stages)
    placement = place_tile(group, tiles, device.level(level), step, placed)
    names = [one.name for one in device.levels]
    further = names[names.index(level) - 1]
    return TileMemory(level, placement, outermost, cached, further)
