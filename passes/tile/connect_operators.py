"""Owns connect-operators: which edges live below the outermost memory level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import device_of, is_tile_graph
from magweld.passes.analysis.graph_body import Edge, GraphBody, read_body
from magweld.passes.analysis.library_calls import is_library
from magweld.passes.analysis.stream_marks import mark_stream
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.tile.equal_parts import connect_parts
from magweld.passes.tile.group_search import GroupSearch
from magweld.passes.tile.grouping import Grouping
from magweld.passes.tile.merger import Fusion, Merger
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.tile_plan import Plan

# Partial groupings that are kept, and parts of groups that are tried to be given back
# in a graph: each takes the planning of about two groups.
WIDTH = 4
TRIALS = 128


@dataclass(frozen=True)
class ConnectOperators(FunctionPass):
    """Choose the memory level of every edge between two operators.

    Groups grow backwards from each operator as long as the predicted time falls
    (Welder's GraphConnecting, section 4.3). An edge inside a group gets the level of
    the group's plan, or "register" where its only reader computes the producer itself;
    every other edge stays at the outermost level and gets `refused`, the rule that
    kept it there and its numbers. Library operators are never connected,
    but to those that the same call computes.

    What is read outside of a group as well becomes another result of it, where caches
    hold the tiles and some tiling stores every element once. A group has two results
    at most, and nothing may have to run between two members.

    What a plan decided already is kept: an edge with `refused` stays outside, and one
    with an inner level is connected, wherever that is possible.

    Example: `"tile_graph.connect"(%0) {level = "dram"}` becomes `{level = "l1"}`, or
    `{level = "dram", refused = "footprint: 90112 bytes needed in l1, 32768 there"}`.

    A group never gives back what it took, unless that lets another edge be connected
    which is worth more: from there several groupings are carried on, and in the end
    the one is taken whose groups have the least predicted time.

    Options:
        fusion: "all" as above; "registers" connects only what its reader computes
            element by element, "none" leaves every operator to itself.
        width: How many groupings are carried on; 1 gives nothing back.
        trials: How often a group of a graph may be tried without a part of it.
        batch: Whether equal groups that are independent count as one launch, in which
            units that one of them would leave idle compute others.
    """

    name: ClassVar[str] = "connect-operators"
    fusion: Fusion = "all"
    width: int = WIDTH
    trials: int = TRIALS
    batch: bool = False

    def run_on_function(self, function: Any) -> None:
        """Set the level of the edges in the graphs of `function`."""
        if not is_tile_graph(function):
            return
        body, scheduler = read_body(function), Scheduler(device_of(function))
        library = _library_operators(body)
        merger = Merger(body, scheduler, self.fusion, library, self.batch)
        Connector(merger, self.width, self.trials).annotate()
        _annotate_indirect(function, body)


@dataclass
class Connector:
    """Finds the groups of one graph.

    Attributes:
        merger: Judges which groups of it run together.
        width: How many partial groupings are kept.
        trials: How many parts of groups are tried to be given back.
        groups: What `connect` found: members by the position of the last of them.
    """

    merger: Merger
    width: int = WIDTH
    trials: int = TRIALS
    groups: dict[int, list[int]] = field(default_factory=dict)

    def connect(self) -> Grouping:
        """Find the groups."""
        search = GroupSearch(self.merger, self.width, self.trials)
        found = connect_parts(self.merger, search)
        self.groups.update(
            (root, list(cluster.members)) for root, cluster in found.clusters.items()
        )
        return found

    def annotate(self) -> None:
        """Find the groups and write the level of every edge."""
        grouping = self.connect()
        for edge in self.merger.body.edges:
            self._annotate(edge, grouping)
        for cluster in grouping.clusters.values():
            self._mark(cluster.members)

    def _annotate(self, edge: Edge, grouping: Grouping) -> None:
        root = grouping.root_of[edge.consumer]
        if grouping.root_of[edge.producer] == root:
            if root in self.merger.library:
                return  # one call computes both
            members = grouping.clusters[root].members
            plan, group = self.merger.plan(members), self.merger.group(members)
            melts = group.stays_in_registers(members.index(edge.producer))
            assert isinstance(plan, Plan), "groups are merged with a plan only"
            registers = self.merger.scheduler.device.levels[-1].name
            name = registers if melts else plan.level
            edge.connect.attributes["level"] = ir.StringAttr.get(name)
            return
        refusal = grouping.refusals.get(edge.connect)
        if refusal is not None:
            _refuse(edge.connect, refusal)

    def _mark(self, members: tuple[int, ...]) -> None:
        if len(members) == 1 or members[-1] in self.merger.library:
            return
        plan = self.merger.plan(members)
        if isinstance(plan, Plan) and plan.tiles.blocks is not None:
            group, stream = self.merger.group(members), plan.tiles.blocks.stream
            mark_stream(self.merger.body, list(members), group, stream)


def _library_operators(body: GraphBody) -> frozenset[int]:
    return frozenset(
        position
        for position, operator in enumerate(body.operators)
        if is_library(operator)
    )


def _annotate_indirect(function: Any, body: GraphBody) -> None:
    """Say of every connect that is no edge between two operators why it is none."""
    direct = {edge.connect for edge in body.edges}
    for op in function.regions[0].blocks[0].operations:
        if op.operation.name != "tile_graph.connect" or op.operation in direct:
            continue
        producer = defining_op(op.operation.operands[0])
        between = "an argument" if producer is None else producer.operation.name
        _refuse(op, Refusal("no-operator", f"it comes from {between}"))


def _refuse(connect: Any, refusal: Refusal) -> None:
    text = f"{refusal.rule}: {refusal.detail}"
    connect.attributes["refused"] = ir.StringAttr.get(text)
