"""Owns groupings: which operators of a graph run together, and how that came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magweld.passes.tiling.propagation import Refusal


@dataclass(frozen=True)
class Cluster:
    """Operators that run together.

    Attributes:
        root: The last of them.
        members: All of them, rising.
        taken: What was taken into the group of the root, one after another.
        bound: Whether it has to stay with what took it: a plan says so, or values go
            over element by element, in registers.
    """

    root: int
    members: tuple[int, ...]
    taken: tuple[Cluster, ...] = ()
    bound: bool = False

    def with_taken(self, others: tuple[Cluster, ...]) -> Cluster:
        """Return this cluster with others in it."""
        inside = [member for one in (self, *others) for member in one.members]
        return Cluster(self.root, tuple(sorted(inside)), (*self.taken, *others))

    def at(self, twin_of: Mapping[int, int]) -> Cluster:
        """Return the same cluster of other operators, given for each of its own."""
        return Cluster(
            twin_of[self.root],
            tuple(sorted(twin_of[member] for member in self.members)),
            tuple(one.at(twin_of) for one in self.taken),
            self.bound,
        )

    def parts(self) -> Iterator[Cluster]:
        """Yield what was taken that can be given back, the largest parts first."""
        for one in self.taken:
            if not one.bound:
                yield one
            yield from one.parts()

    def without(self, part: Cluster) -> Cluster:
        """Return this cluster without something that it, or a part of it, took."""
        outside = set(part.members)
        return Cluster(
            self.root,
            tuple(member for member in self.members if member not in outside),
            tuple(
                one.without(part) if outside.issubset(one.members) else one
                for one in self.taken
                if one is not part
            ),
            self.bound,
        )


@dataclass
class Grouping:
    """A partition of the first operators of a graph.

    Attributes:
        clusters: By the position of their root.
        root_of: The root of the cluster that an operator is in.
        refusals: Why edges between clusters are none inside of one.
    """

    clusters: dict[int, Cluster] = field(default_factory=dict)
    root_of: dict[int, int] = field(default_factory=dict)
    refusals: dict[Any, Refusal] = field(default_factory=dict)

    def copy(self) -> Grouping:
        """Return a grouping that can be changed without this one."""
        return Grouping(dict(self.clusters), dict(self.root_of), dict(self.refusals))

    def add(self, position: int) -> None:
        """Add an operator on its own."""
        self.put(Cluster(position, (position,)))

    def merge(self, parts: tuple[int, ...], *, bound: bool) -> None:
        """Make clusters one, the last one's root the root of all.

        Args:
            parts: The roots of the clusters.
            bound: Whether they have to stay together.
        """
        *others, root = parts
        taken = tuple(replace(self.clusters.pop(i), bound=bound) for i in others)
        self.put(self.clusters[root].with_taken(taken))

    def cut(self, root: int, part: Cluster) -> None:
        """Give a part of a cluster back, as a cluster of its own."""
        self.put(self.clusters[root].without(part))
        self.put(replace(part, bound=False))

    def merged(self, parts: tuple[int, ...]) -> tuple[int, ...]:
        """Return the members of clusters, rising."""
        return tuple(sorted(m for part in parts for m in self.clusters[part].members))

    def put(self, cluster: Cluster) -> None:
        """Let the members of a cluster be in it."""
        self.clusters[cluster.root] = cluster
        for member in cluster.members:
            self.root_of[member] = cluster.root
