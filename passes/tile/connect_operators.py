"""Owns connect-operators: which edges live below the outermost memory level."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from magweld.bindings import ir
from magweld.dialects.tile_graph import MOST_RESULTS, device_of, is_tile_graph
from magweld.passes.analysis.cloning import defining_op
from magweld.passes.analysis.dependences import comes_back, readers_by_operation
from magweld.passes.analysis.graph_body import Edge, GraphBody, read_body
from magweld.passes.analysis.group import Group
from magweld.passes.analysis.policy import Scheduler, tile_levels
from magweld.passes.analysis.propagation import Refusal, propagate
from magweld.passes.analysis.stream_marks import decided_step, mark_stream
from magweld.passes.analysis.trials import Plan
from magweld.passes.base import FunctionPass
from magweld.targets.device import Level, LevelKind

Fusion = Literal["all", "registers", "none"]

# What a stream has to gain by the model. It does not see that blocks of products are
# accumulated in memory, and that what they read is packed again for every tile: two
# products of 512x768x3072 are predicted 8 % faster and are 20 % slower; attention over
# 2048 keys is predicted 40 % faster and is.
STREAM_MARGIN = 0.15


@dataclass(frozen=True)
class ConnectOperators(FunctionPass):
    """Choose the memory level of every edge between two operators.

    Groups grow backwards from each operator as long as the predicted time falls
    (Welder's GraphConnecting, section 4.3). An edge inside a group gets the level of
    the group's plan, or "register" where the producer melts into its only reader;
    every other edge stays at the outermost level and gets `refused`, the rule that
    kept it there and its numbers. Library operators are never connected.

    What is read outside of a group as well becomes another result of it, where caches
    hold the tiles and some tiling stores every element once. A group has two results
    at most, and nothing may have to run between two members.

    What a plan decided already is kept: an edge with `refused` stays outside, and one
    with an inner level is connected, wherever that is possible.

    Example: `"tile_graph.connect"(%0) {level = "dram"}` becomes `{level = "l1"}`, or
    `{level = "dram", refused = "footprint: 90112 bytes needed in l1, 32768 there"}`.

    Options:
        fusion: "all" as above; "registers" connects only what melts into its reader
            element by element, "none" leaves every operator to itself.
    """

    name: ClassVar[str] = "connect-operators"
    fusion: Fusion = "all"

    def run_on_function(self, function: Any) -> None:
        """Set the level of the edges in the graphs of `function`."""
        if not is_tile_graph(function):
            return
        body, scheduler = read_body(function), Scheduler(device_of(function))
        Connector(body, scheduler, self.fusion, _library_operators(body)).annotate()
        _annotate_indirect(function, body)


@dataclass
class Connector:
    """Grows the groups of one graph.

    Attributes:
        body: The graph.
        scheduler: Plans groups.
        fusion: Which operators may share a kernel.
        library: Positions of the operators that a library computes.
        groups: What `connect` found: members by the position of the last of them.
    """

    body: GraphBody
    scheduler: Scheduler
    fusion: Fusion
    library: Collection[int]
    groups: dict[int, list[int]] = field(default_factory=dict)
    _root_of: dict[int, int] = field(default_factory=dict)
    _refusals: dict[Any, Refusal] = field(default_factory=dict)

    def connect(self) -> None:
        """Find the groups."""
        for position in range(len(self.body.operators)):
            self.groups[position] = [position]
            self._root_of[position] = position
            while self._absorb(position):
                pass

    def annotate(self) -> None:
        """Find the groups and write the level of every edge."""
        self.connect()
        for edge in self.body.edges:
            self._annotate(edge)
        for members in self.groups.values():
            self._mark(members)

    def _plan(self, members: list[int]) -> Plan | Refusal:
        root = self.body.operators[members[-1]]
        tile = root.attributes.get("tile")
        group = self.body.group(members)
        if tile is not None:
            step = decided_step(root)
            return self.scheduler.plan_tile(group, tuple(tile.sizes), step)
        return self.scheduler.plan(group)

    def _absorb(self, root: int) -> bool:
        """Take one producer's group into the group of `root` if that pays."""
        members = self.groups[root]
        for edge in self.body.edges:
            if edge.consumer not in members or edge.producer in members:
                continue
            if self._planned.get(edge.connect) is False:
                continue
            producer = self._root_of[edge.producer]
            refusal = self._try((producer, root), edge.connect in self._planned)
            if refusal is None:
                self._refusals.pop(edge.connect, None)
                return True
            self._refusals[edge.connect] = refusal
        return self._absorb_all(root)

    def _absorb_all(self, root: int) -> bool:
        """Take the groups of all producers at once: one may need what another makes."""
        members = self.groups[root]
        producers = {
            self._root_of[edge.producer]
            for edge in self.body.edges
            if edge.consumer in members
            and edge.producer not in members
            and edge.connect not in self._planned
        }
        parts = (*sorted(producers.difference(self.library)), root)
        return len(parts) > 2 and self._try(parts, False) is None

    def _try(self, parts: tuple[int, ...], planned: bool) -> Refusal | None:
        """Make groups one, the last one's root the root of all; or say why not."""
        library = [self.body.models[i].name for i in parts if i in self.library]
        if library:
            return Refusal("library", f"{library[0]} is a library call")
        together = sorted(member for part in parts for member in self.groups[part])
        merged = self.body.group(together)
        refusal = self._refuse_outputs(merged, together)
        if refusal is not None:
            return refusal
        melts = merged.stays_in_registers(together.index(parts[0])) and len(parts) == 2
        if self.fusion == "none" or (self.fusion == "registers" and not melts):
            return Refusal("not-asked", f"fusion is '{self.fusion}'")
        whole = propagate(merged, merged.root.whole_tile)
        if isinstance(whole, Refusal):
            return whole
        refusal = self._refuse_plan(merged, parts, planned, melts)
        if refusal is None:
            self._merge(parts[-1], parts[:-1], together)
        return refusal

    def _refuse_plan(
        self, merged: Group, parts: tuple[int, ...], planned: bool, melts: bool
    ) -> Refusal | None:
        """Why groups cannot run as one, or why that does not pay, if so.

        Element by element into its only reader is never slower: nothing to weigh, so
        that the best tile need not be known yet.
        """
        most = self.scheduler.most_traffic(merged)
        decided = "tile" in self.body.operators[parts[-1]].attributes
        if melts and not decided and self.scheduler.fits(merged, most):
            return None
        plan = self._plan(sorted(m for part in parts for m in self.groups[part]))
        if isinstance(plan, Refusal):
            return plan
        if planned:
            return None
        if plan.cost.traffic > most:
            apart = self.scheduler.traffic_apart(merged)
            detail = f"{plan.cost.traffic} bytes together, {apart} bytes apart"
            return Refusal("more-traffic", detail)
        return None if melts else self._weigh(plan, parts)

    def _weigh(self, together: Plan, parts: tuple[int, ...]) -> Refusal | None:
        """Why it is slower to run groups as one, if it is."""
        plans = [self._plan(self.groups[part]) for part in parts]
        before = sum(plan.cost.seconds for plan in plans if isinstance(plan, Plan))
        margin = STREAM_MARGIN * (together.tiles.blocks is not None)
        seconds = together.cost.seconds
        known = all(isinstance(plan, Plan) for plan in plans)
        if not known or seconds * (1 + margin) <= before:
            return None
        return Refusal("slower", f"{seconds:.3e} s together, {before:.3e} s apart")

    def _refuse_outputs(self, merged: Group, together: list[int]) -> Refusal | None:
        """Why a group cannot store what its readers elsewhere want, if it cannot."""
        if not merged.outputs:
            return None
        name = merged.nodes[merged.outputs[0][0]].name
        if len(merged.stored) > MOST_RESULTS:
            detail = f"{name} and others: {len(merged.stored)} results of a group"
            return Refusal("other-readers", f"{detail}, {MOST_RESULTS} allowed")
        if any(lvl.kind is LevelKind.EXPLICIT for lvl in self._tile_levels):
            detail = f"{name} is read outside of the group and its tiles are staged"
            return Refusal("other-readers", detail)
        operators = self.body.operators
        units = {
            operators[member]: [operators[other] for other in members]
            for members in self.groups.values()
            for member in members
        }
        if comes_back(self._readers, units, [operators[i] for i in together]):
            detail = f"what reads {name} elsewhere has to run before the group is done"
            return Refusal("other-readers", detail)
        return None

    @cached_property
    def _tile_levels(self) -> tuple[Level, ...]:
        return tile_levels(self.scheduler.device)

    @cached_property
    def _readers(self) -> dict[Any, set[Any]]:
        return readers_by_operation(self.body.operators[0].block)

    @cached_property
    def _planned(self) -> dict[Any, bool]:
        """The edges that a plan decided on, and whether it connects them."""
        outermost = self.scheduler.device.levels[0].name
        connects = {edge.connect: edge.connect.attributes for edge in self.body.edges}
        inside = {c for c, a in connects.items() if a["level"].value != outermost}
        return {
            c: c in inside for c, a in connects.items() if c in inside or "refused" in a
        }

    def _merge(self, root: int, others: tuple[int, ...], together: list[int]) -> None:
        for other in others:
            del self.groups[other]
        for member in together:
            self._root_of[member] = root
        self.groups[root] = together

    def _annotate(self, edge: Edge) -> None:
        root = self._root_of[edge.consumer]
        if self._root_of[edge.producer] == root:
            members = self.groups[root]
            plan = self._plan(members)
            group = self.body.group(members)
            melts = group.stays_in_registers(members.index(edge.producer))
            assert isinstance(plan, Plan), "groups are merged with a plan only"
            registers = self.scheduler.device.levels[-1].name
            name = registers if melts else plan.level
            edge.connect.attributes["level"] = ir.StringAttr.get(name)
            return
        refusal = self._refusals.get(edge.connect)
        if refusal is not None:
            _refuse(edge.connect, refusal)

    def _mark(self, members: list[int]) -> None:
        plan = self._plan(members) if len(members) > 1 else None
        if isinstance(plan, Plan) and plan.tiles.blocks is not None:
            stream = plan.tiles.blocks.stream
            mark_stream(self.body, members, self.body.group(members), stream)


def _library_operators(body: GraphBody) -> frozenset[int]:
    return frozenset(
        position
        for position, operator in enumerate(body.operators)
        if "implementation" in operator.attributes
        and ir.StringAttr(operator.attributes["implementation"]).value == "library"
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
