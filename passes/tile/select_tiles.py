"""Owns select-tiles: the tile of every subgraph, with its predicted traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import (
    device_of,
    is_tile_graph,
    set_tile,
    subgraphs_of,
)
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.library_calls import is_joint_call
from magweld.passes.analysis.stream_marks import STEP, mark_stream, marked_blocks
from magweld.passes.analysis.structure import annotate_equal
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.register_streams import register_stream
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import LevelKind


@dataclass(frozen=True)
class SelectTiles(FunctionPass):
    """Choose the tile of each subgraph by traffic and footprint.

    Welder's SubGraphTiling: the tile with the least predicted time whose footprint fits
    the level. Sizes divide the extents; where divisors are far apart and a core works
    on a tile alone, sizes that leave a smaller tile at the end are tried as well, and
    taken if they are faster (`ragged`). Written to the subgraph:
    `tile`, `level`, `footprint` in bytes, `traffic_before` and `traffic_after`, the
    bytes moved from and to the outermost level unfused and as planned, and
    `predicted_seconds`. A tile that is there already is kept, and what is missing
    beside it is told for it. What one call of a library computes of several operators
    has none.

    For people: `moved_before` and `moved_after`, such bytes for each level from the
    outermost to that of the tiles, `predicted_shares`, the seconds of each level and
    of arithmetic, and `seconds_apart`, the predicted time of the operators unfused,
    where each of them has a plan of its own.
    """

    name: ClassVar[str] = "select-tiles"

    def run_on_function(self, function: Any) -> None:
        """Annotate the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        scheduler = Scheduler(device_of(function))
        unknown = (
            subgraph
            for subgraph in subgraphs_of(function)
            if not {"tile", "footprint"} <= set(subgraph.attributes)
            and not is_joint_call(subgraph)
        )
        annotate_equal(unknown, lambda subgraph: _annotate(subgraph, scheduler))


def _annotate(subgraph: Any, scheduler: Scheduler) -> None:
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    attributes = subgraph.attributes
    tile = attributes.get("tile")
    blocks = None if tile is None else marked_blocks(subgraph, body, group)
    if isinstance(blocks, Refusal):
        raise located_error(subgraph, f"{blocks.rule}: {blocks.detail}")
    plan = (
        scheduler.plan(group)
        if tile is None
        else scheduler.price(group, tuple(tile.sizes), blocks)
    )
    if isinstance(plan, Refusal):
        if tile is not None:
            return  # the model sees no room for it, who chose it does
        if len(group.nodes) > 1:
            raise located_error(subgraph, f"has no plan: {plan.rule}: {plan.detail}")
        # Alone, an operator that fits no inner level runs as one tile from outside.
        set_tile(subgraph, group.root.whole_tile)
        attributes["level"] = ir.StringAttr.get(scheduler.device.levels[0].name)
        return
    after = plan.cost.traffic
    before = scheduler.traffic_apart(group) if len(group.nodes) > 1 else after
    set_tile(subgraph, plan.tile)
    attributes["level"] = ir.StringAttr.get(plan.level)
    attributes["reduction_step"] = i64(plan.step)
    attributes["footprint"] = i64(plan.cost.footprint)
    if len(group.nodes) > 1 and after <= scheduler.most_traffic(group):
        before = max(before, after)  # always so, but for a tile that others chose
    if after <= before:
        attributes["traffic_before"] = i64(before)
        attributes["traffic_after"] = i64(after)
    if tile is None:
        _annotate_stream(attributes, body, group, plan)
    _annotate_registers(attributes, group, plan, scheduler.device)
    attributes["predicted_seconds"] = ir.FloatAttr.get_f64(plan.cost.seconds)
    apart = scheduler.apart(group)
    _annotate_shares(attributes, plan, apart, before)
    if len(apart) == len(group.nodes):
        seconds = sum(one.cost.seconds for one in apart)
        attributes["seconds_apart"] = ir.FloatAttr.get_f64(seconds)


def _annotate_stream(
    attributes: Any, body: GraphBody, group: Group, plan: Plan
) -> None:
    blocks = plan.tiles.blocks
    members = list(range(len(body.operators)))
    mark_stream(body, members, group, None if blocks is None else blocks.stream)
    if blocks is not None:
        attributes[STEP] = i64(blocks.size)


def _annotate_registers(attributes: Any, group: Group, plan: Plan, device: Any) -> None:
    """Say how many rows subgroups have of tiles that lie in registers."""
    found = register_stream(group, plan.tiles, device)
    level = device.level(plan.level)
    if level.kind is LevelKind.EXPLICIT and not isinstance(found, Refusal):
        number = ir.IntegerType.get_signless(64)
        attributes["subgroup_rows"] = ir.IntegerAttr.get(number, found.rows)


def _annotate_shares(
    attributes: Any, plan: Plan, apart: tuple[Plan, ...], before: int
) -> None:
    """Write what each level does as planned and apart; `before` is of the outermost."""
    levels = plan.cost.shares[:-1]
    moved = {share.name: share.amount for share in levels}
    # Apart, tiles may lie in another level than together: all that any plan uses.
    moved_apart: dict[str, int] = {}
    for share in (share for one in apart for share in one.cost.shares[:-1]):
        moved_apart[share.name] = moved_apart.get(share.name, 0) + share.amount
    moved_apart[levels[0].name] = before
    for key, bytes_ in (("moved_before", moved_apart), ("moved_after", moved)):
        attributes[key] = ir.DictAttr.get(
            {name: i64(count) for name, count in bytes_.items()}
        )
    attributes["predicted_shares"] = ir.DictAttr.get(
        {s.name: ir.FloatAttr.get_f64(s.seconds) for s in plan.cost.shares}
    )
