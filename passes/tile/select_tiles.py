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
from magweld.passes.analysis.cost import external_reads
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.policy import Plan, schedule
from magweld.passes.analysis.propagation import Group, Refusal
from magweld.passes.analysis.regions import OperatorKind
from magweld.passes.base import FunctionPass
from magweld.passes.ir_utils import located_error
from magweld.targets.device import Device


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
        plans: dict[Group, Plan | Refusal] = {}
        if not is_tile_graph(function):
            return
        device = device_of(function)
        for subgraph in subgraphs_of(function):
            if "tile" not in subgraph.attributes:
                _annotate(subgraph, device, plans)


def _annotate(
    subgraph: Any, device: Device, plans: dict[Group, Plan | Refusal]
) -> None:
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    plan = _schedule(group, device, plans)
    attributes = subgraph.attributes
    if isinstance(plan, Refusal):
        if len(group.nodes) > 1:
            raise located_error(subgraph, f"has no plan: {plan.rule}: {plan.detail}")
        # Alone, an operator that fits no inner level runs as one tile from outside.
        attributes["tile"] = tile_attribute(group.root.whole_tile)
        attributes["level"] = ir.StringAttr.get(device.levels[0].name)
        return
    before = plan.cost.traffic
    if len(group.nodes) > 1:
        before = sum(_alone(body, i, device, plans) for i in range(len(group.nodes)))
    number = ir.IntegerType.get_signless(64)
    attributes["tile"] = tile_attribute(plan.tile)
    attributes["level"] = ir.StringAttr.get(plan.level)
    attributes["reduction_step"] = ir.IntegerAttr.get(number, plan.step)
    attributes["footprint"] = ir.IntegerAttr.get(number, plan.cost.footprint)
    attributes["traffic_before"] = ir.IntegerAttr.get(number, before)
    attributes["traffic_after"] = ir.IntegerAttr.get(number, plan.cost.traffic)
    attributes["predicted_seconds"] = ir.FloatAttr.get_f64(plan.cost.seconds)


def _schedule(
    group: Group, device: Device, plans: dict[Group, Plan | Refusal]
) -> Plan | Refusal:
    if group not in plans:
        plans[group] = schedule(group, device)
    return plans[group]


def _alone(
    body: GraphBody, position: int, device: Device, plans: dict[Group, Plan | Refusal]
) -> int:
    """Bytes that one operator moves when nothing is connected to it."""
    group = body.group([position])
    if group.root.kind is OperatorKind.CONTRACTION:
        # Its operands are read again for every tile unless a cache holds them.
        plan = _schedule(group, device, plans)
        if isinstance(plan, Plan):
            return plan.cost.traffic
    reads = {tensor: read.total_bytes for _, read, tensor in external_reads(group)}
    return sum(reads.values()) + sum(w.total_bytes for w in group.root.writes)
