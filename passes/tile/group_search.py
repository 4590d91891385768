"""Owns the search for groups: several partial groupings, the fastest is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from magweld.passes.analysis.graph_body import Edge
from magweld.passes.tile.grouping import Cluster, Grouping
from magweld.passes.tile.merger import Merger
from magweld.passes.tiling.policy import tile_levels
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.stream_choices import candidate_blocks

# How far back the groups of a stream are looked for.
STREAM_DEPTH = 4

# Rules by which groups are refused that are too much together: parts may not be.
_TOO_MUCH = frozenset(
    {
        "footprint",
        "recompute",
        "slower",
        "more-traffic",
        "conflicting-tiles",
        "written-twice",
        "other-readers",
    }
)


@dataclass
class GroupSearch:
    """Grows groups backwards from each operator, in the order of a graph.

    One grouping takes whatever pays at once, and never gives it back. Where that makes
    groups that cannot be connected any more, others go on beside it, in which a group
    has given back a part of it that costs less. At the end the one is taken whose
    predicted times have the least sum.

    Attributes:
        merger: Judges which groups run together.
        width: How many groupings go on side by side; 1 never gives anything back.
        trials: How many parts are tried to be given back in a graph.
    """

    merger: Merger
    width: int
    trials: int
    _tried: int = field(default=0, init=False)

    def run(self, positions: Iterable[int]) -> Grouping:
        """Return the best grouping found.

        Args:
            positions: Of the operators, rising; no value of others reaches them.
        """
        beam = [Grouping()]
        for position in positions:
            grown = [one for old in beam for one in self._with(old, position)]
            beam = self._narrowed(grown, position) if len(grown) > 1 else grown
        return self._by_seconds(beam)[0]

    def _with(self, grouping: Grouping, position: int) -> list[Grouping]:
        """Groupings of one operator more."""
        grouping.add(position)
        self._grow(grouping, position)
        if self.width == 1:
            return [grouping]
        return [grouping, *self._alternatives(grouping, position)]

    def _grow(self, grouping: Grouping, root: int) -> None:
        while self._absorb(grouping, root):
            pass

    def _absorb(self, grouping: Grouping, root: int) -> bool:
        """Take one producer's group into the group of `root` if that pays."""
        merger = self.merger
        for edge in self._reads(grouping, root):
            connects = merger.planned.get(edge.connect)
            if connects is False:
                continue
            parts = (grouping.root_of[edge.producer], root)
            refusal = merger.refusal(grouping, parts, planned=connects is True)
            if refusal is None:
                grouping.refusals.pop(edge.connect, None)
                bound = connects is True or merger.melts(grouping, parts)
                grouping.merge(parts, bound=bound)
                return True
            grouping.refusals[edge.connect] = refusal
        return self._absorb_all(grouping, root)

    def _absorb_all(self, grouping: Grouping, root: int) -> bool:
        """Take the groups of all producers at once: one may need what another makes."""
        parts = (*self._producers(grouping, (root,)), root)
        if len(parts) < 3 or self.merger.refusal(grouping, parts, planned=False):
            return self._absorb_stream(grouping, root)
        grouping.merge(parts, bound=False)
        return True

    def _absorb_stream(self, grouping: Grouping, root: int) -> bool:
        """Take groups from further back as well, if all together can be streamed.

        Where tiles are staged, no part of a stream that lacks one of its ends is one.
        """
        if not self.merger.is_staged:
            return False
        parts = (*self._producers(grouping, (root,)), root)
        for _ in range(STREAM_DEPTH):
            further = self._producers(grouping, parts)
            if not further:
                return False
            parts = tuple(sorted({*parts, *further}))
            if self._may_stream(grouping.merged(parts)):
                if self.merger.refusal(grouping, parts, planned=False) is None:
                    grouping.merge(parts, bound=False)
                    return True
        return False

    def _may_stream(self, members: tuple[int, ...]) -> bool:
        """Whether some dimension of a group can be walked in blocks on the device."""
        device = self.merger.scheduler.device
        group = self.merger.group(members)
        ways = candidate_blocks(group, device, tile_levels(device))
        return any(way is not None for way in ways)

    def _producers(self, grouping: Grouping, parts: tuple[int, ...]) -> tuple[int, ...]:
        """The groups, by their roots, that make what some groups read."""
        found = {
            grouping.root_of[edge.producer]
            for part in parts
            for edge in self._reads(grouping, part)
            if edge.connect not in self.merger.planned
        }
        return tuple(sorted(found.difference(self.merger.library, parts)))

    def _reads(self, grouping: Grouping, root: int) -> list[Edge]:
        """The edges over which a group reads what others make."""
        return [
            edge
            for member in grouping.clusters[root].members
            for edge in self.merger.body.edges_to[member]
            if grouping.root_of[edge.producer] != root
        ]

    def _alternatives(self, grouping: Grouping, root: int) -> Iterator[Grouping]:
        """Faster groupings in which an edge is connected that could not be."""
        for edge in self._reads(grouping, root):
            refusal = grouping.refusals.get(edge.connect)
            if refusal is None or refusal.rule not in _TOO_MUCH:
                continue
            if edge.connect in self.merger.planned:
                continue
            for end in (edge.producer, edge.consumer):
                for part in self._parts(grouping, edge, end):
                    changed = self._instead(grouping, edge, end, part)
                    if changed is not None:
                        self._grow(changed, changed.root_of[root])
                        yield changed

    def _parts(self, grouping: Grouping, edge: Edge, end: int) -> Iterator[Cluster]:
        """What the group at one end of an edge could give back for it.

        Only what moves fewer bytes when it is apart than the edge does.
        """
        saved = self._bytes([edge])
        cluster = grouping.clusters[grouping.root_of[end]]
        for part in cluster.parts():
            if end in part.members or self._tried >= self.trials:
                continue
            if self._bytes(self._between(cluster, part)) < saved:
                self._tried += 1
                yield part

    def _instead(
        self, grouping: Grouping, edge: Edge, end: int, part: Cluster
    ) -> Grouping | None:
        """The grouping with an edge connected instead of a part, if it is faster."""
        merger, changed = self.merger, grouping.copy()
        cluster = grouping.clusters[grouping.root_of[end]]
        changed.cut(cluster.root, part)
        parts = (changed.root_of[edge.producer], changed.root_of[edge.consumer])
        if merger.refusal(changed, parts, planned=False) is not None:
            return None
        changed.merge(parts, bound=merger.melts(changed, parts))
        before, after = self._seconds_of(grouping, changed)
        if after >= before:
            return None
        names = [merger.body.models[i].name for i in (edge.producer, edge.consumer)]
        detail = (
            f"{before:.3e} s with this edge connected, {after:.3e} s with that from "
            f"{names[0]} to {names[1]}"
        )
        for between in self._between(cluster, part):
            changed.refusals[between.connect] = Refusal("instead", detail)
        changed.refusals.pop(edge.connect, None)
        return changed

    def _between(self, cluster: Cluster, part: Cluster) -> list[Edge]:
        """The edges between a part of a cluster and the rest."""
        inside, all_ = set(part.members), set(cluster.members)
        return [
            edge
            for member in cluster.members
            for edge in self.merger.body.edges_to[member]
            if edge.producer in all_ and (edge.producer in inside) != (member in inside)
        ]

    def _bytes(self, edges: list[Edge]) -> int:
        models = self.merger.body.models
        made = {(edge.producer, edge.result) for edge in edges}
        return sum(models[node].writes[result].total_bytes for node, result in made)

    def _narrowed(self, grown: list[Grouping], position: int) -> list[Grouping]:
        """The best groupings, one for each way in which operators to come see them."""
        kept: dict[frozenset[tuple[int, ...]], Grouping] = {}
        for grouping in self._by_seconds(grown):
            kept.setdefault(self._visible(grouping, position), grouping)
        # What never gives anything back goes on, or what is better at what it did: the
        # end is no worse.
        first = kept.pop(self._visible(grown[0], position))
        return [first, *kept.values()][: self.width]

    def _by_seconds(self, groupings: list[Grouping]) -> list[Grouping]:
        """Groupings of the same operators, the fastest first."""
        first = groupings[0]

        def gain(grouping: Grouping) -> float:
            before, after = self._seconds_of(first, grouping)
            return after - before

        return sorted(groupings, key=gain)

    def _seconds_of(self, one: Grouping, other: Grouping) -> tuple[float, float]:
        """Predicted times of the groups that only one of two groupings has."""
        ours, theirs = _groups(one), _groups(other)
        seconds = self.merger.seconds
        return (
            sum(map(seconds, sorted(ours - theirs))),
            sum(map(seconds, sorted(theirs - ours))),
        )

    def _visible(self, grouping: Grouping, position: int) -> frozenset[tuple[int, ...]]:
        """The groups that operators behind a position can still be connected to."""
        return frozenset(
            members
            for members in _groups(grouping)
            if any(self._last_reader[member] > position for member in members)
        )

    @cached_property
    def _last_reader(self) -> tuple[int, ...]:
        found = [-1] * len(self.merger.body.operators)
        for edge in self.merger.body.edges:
            found[edge.producer] = max(found[edge.producer], edge.consumer)
        return tuple(found)


def _groups(grouping: Grouping) -> set[tuple[int, ...]]:
    return {cluster.members for cluster in grouping.clusters.values()}
