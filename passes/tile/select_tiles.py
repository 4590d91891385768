"""Owns select-tiles: the tile of every subgraph, with its predicted traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    device_of,
    is_tile_graph,
    subgraphs_of,
    tile_attribute,
)
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.policy import Scheduler
from magweld.passes.analysis.propagation import Refusal
from magweld.passes.base import FunctionPass
from magweld.passes.ir_utils import located_error


@dataclass(frozen=True)
class SelectTiles(FunctionPass):
    """Choose the tile of each subgraph by traffic and footprint.

    Welder's SubGraphTiling: among tiles whose sizes divide the extents, the one with
    the least predicted time whose footprint fits the level. Written to the subgraph:
    `tile`, `level`, `footprint` in bytes, `traffic_before` and `traffic_after`, the
    bytes moved from and to the outermost level unfused and as planned, and
    `predicted_seconds`. A tile that is there already is kept.
    """

    name: ClassVar[str] = "select-tiles"

    def run_on_function(self, function: Any) -> None:
        """Annotate the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        scheduler = Scheduler(device_of(function))
        for subgraph in subgraphs_of(function):
            if "tile" not in subgraph.attributes:
                _annotate(subgraph, scheduler)


def _annotate(subgraph: Any, scheduler: Scheduler) -> None:
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    plan = scheduler.plan(group)
    attributes = subgraph.attributes
    if isinstance(plan, Refusal):
        if len(group.nodes) > 1:
            raise located_error(subgraph, f"has no plan: {plan.rule}: {plan.detail}")
        # Alone, an operator that fits no inner level runs as one tile from outside.
        attributes["tile"] = tile_attribute(group.root.whole_tile)
        attributes["level"] = ir.StringAttr.get(scheduler.device.levels[0].name)
        return
    after = plan.cost.traffic
    before = scheduler.traffic_apart(group) if len(group.nodes) > 1 else after
    number = ir.IntegerType.get_signless(64)
    attributes["tile"] = tile_attribute(plan.tile)
    attributes["level"] = ir.StringAttr.get(plan.level)
    attributes["reduction_step"] = ir.IntegerAttr.get(number, plan.step)
    attributes["footprint"] = ir.IntegerAttr.get(number, plan.cost.footprint)
    attributes["traffic_before"] = ir.IntegerAttr.get(number, before)
    attributes["traffic_after"] = ir.IntegerAttr.get(number, after)
    attributes["predicted_seconds"] = ir.FloatAttr.get_f64(plan.cost.seconds)
