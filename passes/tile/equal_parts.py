"""Owns the parts of a graph that no value joins: equal ones are connected once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from magweld.passes.tile.alike_merges import Members, renamed
from magweld.passes.tile.components import components
from magweld.passes.tile.group_search import GroupSearch
from magweld.passes.tile.grouping import Cluster, Grouping
from magweld.passes.tile.merger import Merger

# Graphs of so many operators have equal parts: to look for them costs a tenth of what
# connecting one does.
_MANY = 32


def connect_parts(merger: Merger, search: GroupSearch) -> Grouping:
    """Return the grouping of a graph, that of equal parts found once.

    Args:
        merger: Judges which groups run together.
        search: Finds the groups.
    """
    count = len(merger.body.operators)
    if count < _MANY:
        return search.run(range(count))
    first: dict[Hashable, _Part] = {}
    twins: list[tuple[_Part, _Part]] = []
    for part in _parts_of(merger):
        equal = first.setdefault(part.structure, part)
        if equal is not part:
            twins.append((equal, part))
    own = sorted(member for part in first.values() for member in part.members)
    found = search.run(own)
    groups = _clusters_by_part(found, [equal for equal, _ in twins])
    for equal, part in twins:
        _repeat(merger, found, groups[equal.members], equal, part)
    return found


@dataclass(frozen=True)
class _Part:
    """Operators that values join, through whatever operations.

    Attributes:
        members: Their positions, rising.
        structure: Equal for parts whose operators can be connected alike.
    """

    members: Members
    structure: Hashable


def _parts_of(merger: Merger) -> Iterator[_Part]:
    """Yield the parts of a graph in the order of their first operators."""
    body, readers = merger.body, merger.readers
    position_at = {place: number for number, place in enumerate(merger.places)}
    for places in _joined(readers):
        members = tuple([position_at[p] for p in places if p in position_at])
        if not members:
            continue
        number_of = {place: number for number, place in enumerate(places)}
        read_by = tuple(
            tuple([number_of[r] for r in readers[place] if r in number_of])
            for place in places
        )
        libraries = tuple([member in merger.library for member in members])
        are_operators = tuple([place in position_at for place in places])
        decided = any("tile" in body.operators[m].attributes for m in members) or any(
            edge.connect in merger.planned
            for member in members
            for edge in body.edges_to[member]
        )
        # What is decided of a part is its own.
        own = members if decided else ()
        structure = (merger.group(members), read_by, are_operators, libraries, own)
        yield _Part(members, structure)


def _joined(readers: tuple[Members, ...]) -> list[list[int]]:
    """Return places of operations that values join, rising, in order of their first.

    The terminator reads what all parts return, and joins none.
    """
    last = len(readers) - 1
    pairs = (
        (place, reader)
        for place, read_by in enumerate(readers[:last])
        for reader in read_by
        if reader != last
    )
    return components(last, pairs)


def _clusters_by_part(
    found: Grouping, parts: list[_Part]
) -> Mapping[Members, list[Cluster]]:
    """Return the clusters of some parts, by the members of these."""
    groups: dict[Members, list[Cluster]] = {part.members: [] for part in parts}
    part_of = {member: members for members in groups for member in members}
    for root, cluster in found.clusters.items():
        if root in part_of:
            groups[part_of[root]].append(cluster)
    return groups


def _repeat(
    merger: Merger,
    grouping: Grouping,
    clusters: list[Cluster],
    equal: _Part,
    part: _Part,
) -> None:
    """Group a part as an equal one is, and refuse for the same reasons."""
    body = merger.body
    twin_of = dict(zip(equal.members, part.members, strict=True))
    for cluster in clusters:
        grouping.put(cluster.at(twin_of))
    names = {
        body.models[one].name: body.models[other].name for one, other in twin_of.items()
    }
    for one, other in twin_of.items():
        edges = zip(body.edges_to[one], body.edges_to[other], strict=True)
        for edge, twin in edges:
            refusal = grouping.refusals.get(edge.connect)
            if refusal is not None:
                grouping.refusals[twin.connect] = renamed(refusal, names)
