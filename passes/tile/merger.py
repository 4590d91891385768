"""Owns the judgement whether groups of operators run as one, and what that takes."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from magweld.dialects.tile_graph import MOST_RESULTS
from magweld.passes.analysis.dependences import comes_back, readers_by_place
from magweld.passes.analysis.graph_body import GraphBody
from magweld.passes.analysis.stream_marks import decided_step
from magweld.passes.tile.alike_merges import AlikeMerges, Members
from magweld.passes.tile.grouping import Grouping
from magweld.passes.tile.twins import Twins
from magweld.passes.tiling.batched_cost import LARGE_BYTES, batched_seconds
from magweld.passes.tiling.cost import COPY_SECONDS
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.policy import Scheduler, tile_levels
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import OperatorKind
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import LevelKind

Fusion = Literal["all", "registers", "none"]

# What a stream has to gain by the model. It does not see that blocks of products are
# accumulated in memory, and that what they read is packed again for every tile: two
# products of 512x768x3072 are predicted 8 % faster and are 20 % slower; attention over
# 2048 keys is predicted 40 % faster and is, 14 % with half as wide vectors, and is.
STREAM_MARGIN = 0.1
# What an operator counts for that has no plan and fits nowhere: more than any other.
UNKNOWN_SECONDS = 1e3

# Operators of one group. Planning one takes time in proportion to its members, and is
# done again for each that joins: without a bound a loop that is unrolled 64 times takes
# minutes. The largest group of the models in benchmarks/ has 21.
MOST_MEMBERS = 64


@dataclass
class Merger:
    """Judges which groups of a graph may be made one.

    Attributes:
        body: The graph.
        scheduler: Plans groups.
        fusion: Which operators may share a kernel.
        library: Positions of the operators that a library computes.
        batch: Whether equal groups that are independent share a launch.
    """

    body: GraphBody
    scheduler: Scheduler
    fusion: Fusion
    library: Collection[int]
    batch: bool = False
    _groups: dict[Members, Group] = field(default_factory=dict)
    _equal: dict[Group, Group] = field(default_factory=dict)
    _refusals: dict[tuple[Members, ...], Refusal | None] = field(default_factory=dict)
    _alike: AlikeMerges = field(init=False)

    def __post_init__(self) -> None:
        self._alike = AlikeMerges(self.body)

    def group(self, members: Members) -> Group:
        """Return operators as a group."""
        if members not in self._groups:
            group = self.body.group(list(members))
            # What is read of a group once is not read again of an equal one.
            self._groups[members] = self._equal.setdefault(group, group)
        return self._groups[members]

    def plan(self, members: Members) -> Plan | Refusal:
        """Return the plan of a group, with the tile that was decided if one was."""
        root = self.body.operators[members[-1]]
        tile = root.attributes.get("tile")
        group = self.group(members)
        if tile is None:
            return self.scheduler.plan(group)
        step = decided_step(root)
        return self.scheduler.plan_tile(group, tuple(tile.sizes), step)

    def seconds(self, members: Members) -> float:
        """Return the predicted time of a group, a stream's with its margin.

        What a library computes counts for nothing: it is in no other group.
        """
        if members[-1] in self.library:
            return 0.0
        plan = self.plan(members)
        if not isinstance(plan, Plan):
            return UNKNOWN_SECONDS
        margin = 1 + STREAM_MARGIN * (plan.tiles.blocks is not None)
        return self._launched(plan, members) * margin

    def melts(self, grouping: Grouping, parts: tuple[int, ...]) -> bool:
        """Whether the first of two groups goes into the other element by element.

        Into one reader: loop nests of several readers that each make it again want its
        group to have tiles that suit them all, which may be slower.
        """
        members = grouping.merged(parts)
        group, first = self.group(members), members.index(parts[0])
        one_reader = len(parts) == 2 and len(group.consumers(first)) == 1
        return one_reader and group.stays_in_registers(first)

    def refusal(
        self, grouping: Grouping, parts: tuple[int, ...], *, planned: bool
    ) -> Refusal | None:
        """Return why groups, by their roots, do not run as one, None if they do.

        Args:
            grouping: What is grouped already.
            parts: The groups; the root of the last one is that of all.
            planned: Whether they have to if they can.
        """
        library = [self.body.models[i].name for i in parts if i in self.library]
        if planned and len(library) == len(parts):
            return None  # one call computes both
        if library:
            return Refusal("library", f"{library[0]} is a library call")
        together = grouping.merged(parts)
        if len(together) > MOST_MEMBERS:
            detail = f"{len(together)} operators of a group, {MOST_MEMBERS} allowed"
            return Refusal("members", detail)
        form = None if planned else self._form(grouping, parts)
        made = grouping.clusters[parts[0]].members
        refusal = self._alike.known(form, made)
        if refusal is None:
            refusal = self._judged(grouping, parts, planned)
            if refusal is not None:
                self._alike.keep(form, made, refusal)
        return refusal

    def _form(self, grouping: Grouping, parts: tuple[int, ...]) -> Hashable | None:
        if self.body.models[parts[-1]].kind is not OperatorKind.CONCATENATION:
            return None
        made = grouping.clusters[parts[0]].members
        count = tuple(self._twins.counts[member] for member in made)
        shared = self._twins.shared_bytes(made)
        return self._alike.form(grouping, parts, self.group(made), (*count, shared))

    def _judged(
        self, grouping: Grouping, parts: tuple[int, ...], planned: bool
    ) -> Refusal | None:
        refusal = self._refuse_outputs(grouping, grouping.merged(parts))
        if refusal is not None:
            return refusal
        melts = self.melts(grouping, parts)
        if self.fusion == "none" or (self.fusion == "registers" and not melts):
            return Refusal("not-asked", f"fusion is '{self.fusion}'")
        # Members that one reader joins may be faster side by side.
        melts = melts and not self._joins_members(parts)
        clusters = tuple(grouping.clusters[part].members for part in parts)
        if planned:
            return self._refuse_plan(clusters, melts, planned)
        if clusters not in self._refusals:
            self._refusals[clusters] = self._refuse_plan(clusters, melts, planned)
        return self._refusals[clusters]

    def _refuse_plan(
        self, clusters: tuple[Members, ...], melts: bool, planned: bool
    ) -> Refusal | None:
        """Why groups cannot run as one, or why that does not pay, if so.

        Element by element into its only reader is never slower: nothing to weigh, so
        that the best tile need not be known yet.
        """
        members = tuple(sorted(member for one in clusters for member in one))
        group = self.group(members)
        whole = self.scheduler.propagate_whole(group)
        if isinstance(whole, Refusal):
            return whole
        most = self.scheduler.most_traffic(group)
        decided = "tile" in self.body.operators[members[-1]].attributes
        if melts and not decided and self.scheduler.fits(group, most):
            return None
        plan = self.plan(members)
        if isinstance(plan, Refusal):
            return plan
        if planned:
            return None
        if plan.cost.traffic > most:
            apart = self.scheduler.traffic_apart(group)
            detail = f"{plan.cost.traffic} bytes together, {apart} bytes apart"
            return Refusal("more-traffic", detail)
        return None if melts else self._weigh(plan, clusters)

    def _weigh(self, together: Plan, clusters: tuple[Members, ...]) -> Refusal | None:
        """Why it is slower to run groups as one, if it is."""
        plans = [self.plan(members) for members in clusters]
        if not all(isinstance(plan, Plan) for plan in plans):
            return None
        before = sum(
            self._launched(plan, members)
            for plan, members in zip(plans, clusters, strict=True)
            if isinstance(plan, Plan)
        )
        members = tuple(sorted(member for one in clusters for member in one))
        if self.seconds(members) <= before:
            return None
        seconds = self._launched(together, members)
        return Refusal("slower", f"{seconds:.3e} s together, {before:.3e} s apart")

    def _launched(self, plan: Plan, members: Members) -> float:
        """Return the predicted time of a group in the launch that it is in."""
        if not self.batch:
            return plan.cost.seconds
        count = min(self._twins.counts[member] for member in members)
        if count == 1 or plan.cost.traffic >= LARGE_BYTES:
            return plan.cost.seconds + self._waited(plan, members)
        return batched_seconds(
            plan.cost,
            plan.tiles.grid,
            self.scheduler.device,
            plan.level,
            count,
            self._twins.shared_bytes(members),
        )

    def _waited(self, plan: Plan, members: Members) -> float:
        """Return what blocks of a GPU wait for parts of a concatenation, one by one.

        Each part that would be a member of a batch begins with loads of its own.
        """
        *others, root = members
        joins = self.body.models[root].kind is OperatorKind.CONCATENATION
        if not (joins and self.is_staged):
            return 0.0
        made = {edge.producer for edge in self.body.edges_to[root]}
        parts = [one for one in others if one in made and self._twins.counts[one] > 1]
        units = max(1, self.scheduler.device.level(plan.level).units)
        return len(parts) * -(-plan.tiles.grid // units) * COPY_SECONDS

    @cached_property
    def _twins(self) -> Twins:
        operators = range(len(self.places))
        alone = [self.group((operator,)) for operator in operators]
        return Twins(self.body, self.readers, self.places, alone)

    def _joins_members(self, parts: tuple[int, ...]) -> bool:
        """Whether a concatenation takes what would be a member of a batch."""
        *others, root = parts
        if not self.batch:
            return False
        joins = self.body.models[root].kind is OperatorKind.CONCATENATION
        return joins and min(self._twins.counts[other] for other in others) > 1

    def _refuse_outputs(self, grouping: Grouping, together: Members) -> Refusal | None:
        """Why a group cannot store what its readers elsewhere want, if it cannot."""
        merged = self.group(together)
        if not merged.outputs:
            return None
        name = self.body.models[together[merged.outputs[0][0]]].name
        if len(merged.stored) > MOST_RESULTS:
            detail = f"{name} and others: {len(merged.stored)} results of a group"
            return Refusal("other-readers", f"{detail}, {MOST_RESULTS} allowed")
        if self.is_staged:
            detail = f"{name} is read outside of the group and its tiles are staged"
            return Refusal("other-readers", detail)
        places, clusters = self.places, grouping.clusters

        def unit_of(place: int) -> Members:
            root = grouping.root_of.get(self._positions.get(place, -1))
            if root is None:
                return (place,)
            return tuple([places[member] for member in clusters[root].members])

        if comes_back(self.readers, unit_of, [places[member] for member in together]):
            detail = f"what reads {name} elsewhere has to run before the group is done"
            return Refusal("other-readers", detail)
        return None

    @cached_property
    def is_staged(self) -> bool:
        """Whether tiles lie in memory that a program fills."""
        levels = tile_levels(self.scheduler.device)
        return any(level.kind is LevelKind.EXPLICIT for level in levels)

    @cached_property
    def readers(self) -> tuple[Members, ...]:
        """For each operation of the block the places of those that read its results."""
        return readers_by_place(self.body.operators[0].block)

    @cached_property
    def places(self) -> Members:
        """Where in the block each operator stands."""
        block = self.body.operators[0].block.operations
        place_of = {op.operation: place for place, op in enumerate(block)}
        return tuple(place_of[operator] for operator in self.body.operators)

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {place: position for position, place in enumerate(self.places)}

    @cached_property
    def planned(self) -> dict[Any, bool]:
        """The edges that a plan decided on, and whether it connects them."""
        outermost = self.scheduler.device.levels[0].name
        connects = {edge.connect: edge.connect.attributes for edge in self.body.edges}
        inside = {c for c, a in connects.items() if a["level"].value != outermost}
        return {
            c: c in inside for c, a in connects.items() if c in inside or "refused" in a
        }
