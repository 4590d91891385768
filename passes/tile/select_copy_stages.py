"""Owns select-copy-stages: how many steps of staged operands are held at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    TileAttr,
    device_of,
    is_tile_graph,
    subgraphs_of,
)
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.stream_marks import marked_blocks
from magweld.passes.analysis.structure import annotate_equal
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.tiling.copy_stages import MOST_STAGES, Staging, copy_stages, staging
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.matrix_units import copies_ahead
from magweld.passes.tiling.propagation import Refusal, propagate
from magweld.passes.tiling.register_streams import register_stream
from magweld.passes.tiling.stream import Blocks
from magweld.targets.device import Device, LevelKind


@dataclass(frozen=True)
class SelectCopyStages(FunctionPass):
    """Choose how many steps of the operands of contractions are held at a time.

    Of devices whose threads copy to shared memory asynchronously: `copy_stages` of a
    subgraph, one more than the steps that are on their way while one is computed with.
    As many as there are steps, and as have room: two tiles in the level where one of
    two stages leaves as much, else one tile. `footprint` becomes what they take. A
    subgraph without a tile, or in a cache, without a contraction whose operands are
    staged in several steps is left as it is. Of a stream whose tiles lie in registers
    as many blocks are held of what its products read.
    """

    name: ClassVar[str] = "select-copy-stages"

    most: Annotated[int, "most steps that are held"] = MOST_STAGES

    def run_on_function(self, function: Any) -> None:
        """Annotate the subgraphs of `function`."""
        if is_tile_graph(function):
            device = device_of(function)
            annotate_equal(
                subgraphs_of(function), lambda one: _annotate(one, device, self.most)
            )


def _annotate(subgraph: Any, device: Device, most: int) -> None:
    attributes = subgraph.attributes
    if not {"tile", "footprint", "reduction_step"} <= set(attributes):
        return
    level = device.level(ir.StringAttr(attributes["level"]).value)
    if level.kind is not LevelKind.EXPLICIT:
        return
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    blocks = marked_blocks(subgraph, body, group)
    if isinstance(blocks, Blocks):
        _annotate_rings(subgraph, group, blocks, device, most)
        return
    tiles = propagate(group, TileAttr(attributes["tile"]).sizes)
    if isinstance(tiles, Refusal):
        return  # propagate-tiles says so
    step = attributes["reduction_step"].value
    staged = staging(group, tiles, device, level, step)
    staged = staged if staged.step == step else Staging(step)
    found = copy_stages(group, tiles, level, staged, most)
    if found is not None:
        number = ir.IntegerType.get_signless(64)
        attributes["copy_stages"] = ir.IntegerAttr.get(number, found.count)
        attributes["footprint"] = ir.IntegerAttr.get(number, found.planned)


def _annotate_rings(
    subgraph: Any, group: Group, blocks: Blocks, device: Device, most: int
) -> None:
    """Say how many blocks of a stream are held of what products read."""
    attributes = subgraph.attributes
    level = device.level(ir.StringAttr(attributes["level"]).value)
    tiles = propagate(group, TileAttr(attributes["tile"]).sizes, blocks)
    if isinstance(tiles, Refusal):
        return
    stream = register_stream(group, tiles, device)
    if isinstance(stream, Refusal) or not copies_ahead(group.nodes, device):
        return
    count = min(most, stream.stages(level, copies_ahead=True))
    number = ir.IntegerType.get_signless(64)
    attributes["copy_stages"] = ir.IntegerAttr.get(number, count)
    attributes["footprint"] = ir.IntegerAttr.get(number, count * stream.block_bytes)
