"""Owns the propagation of a result tile backwards through a group of operators.

Welder's Propagate (section 4.2): given the tile of the last operator, the tile of
every producer and the region of every operand follow from the access expressions.
Regions are boxes that hold for every tile position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from magweld.passes.tiling.clamps import Clamp
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.needs import Box, Need, Needs, Node, OperatorTile
from magweld.passes.tiling.partition import is_partition
from magweld.passes.tiling.regions import ZERO, Access, Interval, OperatorModel
from magweld.passes.tiling.stream import Blocks


@dataclass(frozen=True)
class Refusal:
    """Why a plan or a connection is impossible or not worth it.

    Attributes:
        rule: Stable id, kebab case.
        detail: Numbers and names.
        excess: How many times what is allowed, where that is a number.
    """

    rule: str
    detail: str
    excess: float = field(default=math.inf, compare=False)


@dataclass(frozen=True)
class Tiles:
    """What one tile of the root needs.

    Attributes:
        parts: What every node does; of a node that is streamed in one block.
        grid: How many tiles there are.
        recompute: Arithmetic done over arithmetic needed, at least 1.
        clamps: Offsets that are no sums of loops; they are numbered as loops of the
            root behind its own.
        blocks: The streamed dimension, if there is one.
    """

    parts: tuple[OperatorTile, ...]
    grid: int
    recompute: float
    clamps: tuple[Clamp, ...] = ()
    blocks: Blocks | None = None

    def times(self, node: int) -> int:
        """Return how often a tile runs a node: once, or once for each block."""
        return self.parts[node].times

    @property
    def boxes(self) -> tuple[Box, ...]:
        """For every node the box of its iterations, one interval a loop."""
        return tuple([part.box for part in self.parts])


class Needed(NamedTuple):
    """What a tile needs, before it is known of every node what that is.

    Attributes:
        needs: What the nodes need that no others hold, see `Needs.nodes`.
        grid: How many tiles there are.
        recompute: Arithmetic done over arithmetic needed, at least 1.
    """

    needs: tuple[Need, ...]
    grid: int
    recompute: float


def propagate(
    group: Group, tile: tuple[int, ...], blocks: Blocks | None = None
) -> Tiles | Refusal:
    """Return what every node computes for one result tile of the root.

    Args:
        group: The operators.
        tile: Sizes along the root's parallel loops. One that does not divide its
            extent leaves smaller tiles at the end, whose boxes are not returned.
        blocks: What of a dimension exists at a time; all of everything by default.
    """
    return Propagation(group, blocks).tiles(tile)


class Propagation:
    """Propagates tiles of one group."""

    def __init__(
        self, group: Group, blocks: Blocks | None = None, needs: Needs | None = None
    ) -> None:
        """Say what is propagated through.

        Args:
            group: The operators.
            blocks: What of a dimension exists at a time.
            needs: What is known of operators.
        """
        self._group = group
        self._blocks = blocks
        self._shared = needs or Needs(len(group.root.extents))
        self._nodes = self._shared.nodes(group, blocks)
        # Asked for each tile.
        self._extents = group.root.grid_extents
        self._points = math.prod(group.root.whole_tile)
        self._arithmetic = max(1, group.arithmetic)
        self._stored: list[list[Access]] = [[] for _ in group.nodes]
        for node, result in group.outputs:
            self._stored[node].append(group.nodes[node].writes[result])

    def tiles(
        self, tile: tuple[int, ...], most_recompute: float = math.inf
    ) -> Tiles | Refusal:
        """Return what every node computes for one result tile of the root.

        Args:
            tile: Sizes along the root's parallel loops.
            most_recompute: Arithmetic done over arithmetic needed that is allowed.
        """
        needed = self.needed(tile, most_recompute)
        return needed if isinstance(needed, Refusal) else self.found(needed)

    def needed(self, tile: tuple[int, ...], most_recompute: float) -> Needed | Refusal:
        """Return what makes up the `tiles` of a tile; `found` makes them of it."""
        group = self._group
        unsplit = group.root.unsplit
        if unsplit and any(tile[i] < group.root.whole_tile[i] for i in unsplit):
            detail = f"tiles do not hold what {group.root.name} joins"
            return Refusal("unsplit", detail)
        wanted: list[Box | None] = [None] * len(group.nodes)
        wanted[-1] = self._shared.same(group.root.root_box(tile))
        needs: list[Need] = []
        for node in self._nodes:
            box = wanted[node.position]
            if box is None:
                name = group.nodes[node.position].name
                return Refusal("dead-producer", f"{name} has no consumer in the group")
            need = self._shared.of_node(group, node, box, self._blocks)
            needs.append(need)
            refusal = None
            if self._stored[node.position]:
                refusal = self._refuse_store(node.position, need, tile)
            if refusal is None and need.wanted:
                refusal = self._join(wanted, node, need)
            if refusal is not None:
                return refusal
        recompute = self._recompute(tile, sum([need.weight for need in needs]))
        if recompute > most_recompute:
            times = f"{recompute:.2f} times the arithmetic"
            detail = f"{times}, {most_recompute} allowed"
            return Refusal("recompute", detail, recompute / most_recompute)
        return Needed(tuple(needs), self._grid(tile), recompute)

    def found(self, needed: Needed) -> Tiles:
        """Return what every node computes where so much is needed."""
        parts: dict[int, OperatorTile] = {}
        for node, need in zip(self._nodes, needed.needs, strict=True):
            _collect(node, need, parts)
        found = tuple([parts[position] for position in range(len(parts))])
        known = self._shared.clamps.known
        return Tiles(found, needed.grid, needed.recompute, known, self._blocks)

    def _join(
        self, known: list[Box | None], reader: Node, need: Need
    ) -> Refusal | None:
        """Add what a node and those inside it want to what others do."""
        nodes = self._group.nodes
        for (maker, consumer), new in zip(reader.wanted, need.wanted, strict=True):
            old = known[maker]
            if new is None:
                names = f"{nodes[maker].name} -> {nodes[consumer].name}"
                return Refusal("unknown-region", names)
            if old is None:
                known[maker] = new
            elif old is not new:
                joined = _merge(nodes[maker], old, new)
                if isinstance(joined, Refusal):
                    return joined
                known[maker] = self._shared.same(joined)
        return None

    def _refuse_store(
        self, node: int, need: Need, tile: tuple[int, ...]
    ) -> Refusal | None:
        """Why all tiles together do not write what others read once, if so."""
        root, box = self._group.root, need.part.box
        for write in self._stored[node]:
            if not is_partition(write.shape, write.box(box), root, tile):
                name = self._group.nodes[node].name
                detail = f"tiles do not store each element of {name} once"
                return Refusal("written-twice", detail)
        return None

    def _recompute(self, tile: tuple[int, ...], done: int) -> float:
        """Arithmetic done over arithmetic needed.

        A smaller tile at the end counts as the part of a whole one that it is.
        """
        return done * self._points / (self._arithmetic * math.prod(tile))

    def _grid(self, tile: tuple[int, ...]) -> int:
        # An empty result is one tile: nothing is computed, everything is well-formed.
        return math.prod(
            [max(1, -(-e // size)) for e, size in zip(self._extents, tile, strict=True)]
        )


def _collect(node: Node, need: Need, parts: dict[int, OperatorTile]) -> None:
    """Add what a node does, and what those inside it do, by their positions."""
    parts[node.position] = need.part
    for one, inner in zip(node.inner, need.inner, strict=True):
        _collect(one, inner, parts)


def _merge(
    producer: OperatorModel,
    known: Box,
    new: Box,
) -> Box | Refusal:
    """Join what two consumers need: the least box that holds both at every position."""
    joined: list[Interval] = []
    for extent, a, b in zip(producer.extents, known, new, strict=True):
        span = _span(a, b, extent)
        if span is None:
            detail = f"two consumers need different tiles of {producer.name}"
            return Refusal("conflicting-tiles", detail)
        joined.append(span)
    return tuple(joined)


def _span(a: Interval, b: Interval, extent: int) -> Interval | None:
    """The interval that holds two of a loop, None if their distance is not known."""
    if a == b:
        return a
    if extent in (a.size, b.size):
        return Interval(ZERO, extent)
    if a.offset.terms != b.offset.terms:
        return None
    first, second = sorted((a, b), key=lambda i: i.offset.constant)
    size = max(first.size, second.offset.constant - first.offset.constant + second.size)
    return Interval(first.offset, size)
