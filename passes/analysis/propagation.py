"""Owns the propagation of a result tile backwards through a group of operators.

Welder's Propagate (section 4.2): given the tile of the last operator, the tile of
every producer and the region of every operand follow from the access expressions.
Regions are boxes that hold for every tile position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from magweld.passes.analysis.clamps import Clamp, Clamps
from magweld.passes.analysis.group import Group
from magweld.passes.analysis.partition import is_partition
from magweld.passes.analysis.regions import (
    STREAM,
    ZERO,
    Access,
    Interval,
    LinearIndex,
    OperatorModel,
)
from magweld.passes.analysis.stream import Stream


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
class Blocks:
    """A streamed dimension and the size of the blocks that it is walked in.

    The last block is smaller where the size does not divide the extent.
    """

    stream: Stream
    size: int

    @property
    def count(self) -> int:
        """How many blocks there are, a smaller last one among them."""
        return -(-self.stream.extent // self.size)

    def of_node(self, node: int, box: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """Return a box of iterations with its streamed loop at one block."""
        streamed = self.stream.loops[node]
        block = Interval(LinearIndex(((STREAM, 1),)), self.size)
        return tuple(
            block if loop == streamed else interval for loop, interval in enumerate(box)
        )


@dataclass(frozen=True)
class Tiles:
    """What one tile of the root needs.

    Attributes:
        boxes: For every node the box of iterations, one interval a loop; of a node
            that is streamed those of one block.
        grid: How many tiles there are.
        recompute: Arithmetic done over arithmetic needed, at least 1.
        clamps: Offsets that are no sums of loops; they are numbered as loops of the
            root behind its own.
        blocks: The streamed dimension, if there is one.
    """

    boxes: tuple[tuple[Interval, ...], ...]
    grid: int
    recompute: float
    clamps: tuple[Clamp, ...] = ()
    blocks: Blocks | None = None

    def points(self, node: int) -> int:
        """Return how many iterations of a node one tile runs."""
        return _points(self.boxes[node], node, self.blocks)

    def times(self, node: int) -> int:
        """Return how often a tile runs a node: once, or once for each block."""
        blocks = self.blocks
        return blocks.count if blocks and blocks.stream.loops[node] is not None else 1


def _points(box: tuple[Interval, ...], node: int, blocks: Blocks | None) -> int:
    found = math.prod(interval.size for interval in box)
    if blocks is None or blocks.stream.loops[node] is None:
        return found
    return found // blocks.size * blocks.stream.extent


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


Box = tuple[Interval, ...]


class _Need(NamedTuple):
    """What a node does and reads for a box.

    Attributes:
        box: The box, or one block of it.
        weight: What its arithmetic counts for.
        wanted: Producers, and what they have to make of their results.
    """

    box: Box
    weight: int
    wanted: tuple[tuple[int, Box | Refusal], ...]


class Propagation:
    """Propagates tiles of one group.

    Far from the root many tiles need the same: what a node reads for a box is found
    once. Equal boxes are one object, so that looking for them is cheap.
    """

    def __init__(self, group: Group, blocks: Blocks | None = None) -> None:
        """Know nothing yet.

        Args:
            group: The operators.
            blocks: What of a dimension exists at a time.
        """
        self._group = group
        self._blocks = blocks
        self._clamps = Clamps(len(group.root.extents))
        self._boxes: dict[Box, Box] = {}
        self._needs: list[dict[int, _Need]] = [{} for _ in group.nodes]
        self._stored: list[list[Access]] = [[] for _ in group.nodes]
        for node, result in group.outputs:
            self._stored[node].append(group.nodes[node].writes[result])

    def tiles(self, tile: tuple[int, ...]) -> Tiles | Refusal:
        """Return what every node computes for one result tile of the root."""
        group = self._group
        if any(tile[i] < group.root.whole_tile[i] for i in group.root.unsplit):
            detail = f"tiles do not hold what {group.root.name} joins"
            return Refusal("unsplit", detail)
        boxes: list[Box | None] = [None] * len(group.nodes)
        boxes[-1] = self._same(group.root.root_box(tile))
        done = 0
        for consumer in range(len(boxes) - 1, -1, -1):
            box = boxes[consumer]
            if box is None:
                name = group.nodes[consumer].name
                return Refusal("dead-producer", f"{name} has no consumer in the group")
            need = self._needs[consumer].get(id(box)) or self._need(consumer, box)
            boxes[consumer] = need.box
            done += need.weight
            if self._stored[consumer] and not self._stores_once(consumer, need, tile):
                name = group.nodes[consumer].name
                detail = f"tiles do not store each element of {name} once"
                return Refusal("written-twice", detail)
            for position, wanted in need.wanted:
                merged = self._joined(position, boxes[position], wanted)
                if isinstance(merged, Refusal):
                    return merged
                boxes[position] = merged
        final = tuple([box for box in boxes if box is not None])
        return self._found(tile, final, done)

    def _stores_once(self, node: int, need: _Need, tile: tuple[int, ...]) -> bool:
        """Whether all tiles together write each element that others read once."""
        root = self._group.root
        return all(
            is_partition(write.shape, write.box(need.box), root, tile)
            for write in self._stored[node]
        )

    def _found(self, tile: tuple[int, ...], boxes: tuple[Box, ...], done: int) -> Tiles:
        extents = self._group.root.grid_extents
        # An empty result is one tile: nothing is computed, everything is well-formed.
        grid = math.prod(
            [max(1, -(-e // size)) for e, size in zip(extents, tile, strict=True)]
        )
        # A smaller tile at the end counts as the part of a whole one that it is.
        points = math.prod(self._group.root.whole_tile)
        needed = max(1, self._group.arithmetic) * math.prod(tile)
        recompute = done * points / needed
        return Tiles(boxes, grid, recompute, self._clamps.known, self._blocks)

    def _need(self, position: int, box: Box) -> _Need:
        """Find what a node needs for a box, and keep it."""
        group, blocks, whole = self._group, self._blocks, box
        node = group.nodes[position]
        if blocks is not None:
            box = self._same(blocks.of_node(position, box))
        wanted: list[tuple[int, Box | Refusal]] = []
        for read, producer, result in group.inner_reads[position]:
            maker = group.nodes[producer]
            found = _producer_box(maker, result, node, read, box, self._clamps)
            known = found if isinstance(found, Refusal) else self._same(found)
            wanted.append((producer, known))
        weight = _points(box, position, blocks) * group.weights[position]
        need = _Need(box, weight, tuple(wanted))
        self._needs[position][id(whole)] = need
        return need

    def _joined(
        self, position: int, known: Box | None, new: Box | Refusal
    ) -> Box | Refusal:
        if known is None or known is new or isinstance(new, Refusal):
            return new
        joined = _merge(self._group.nodes[position], known, new)
        return joined if isinstance(joined, Refusal) else self._same(joined)

    def _same(self, box: Box) -> Box:
        """Return the one object that stands for all equal boxes, and lives as long."""
        return self._boxes.setdefault(box, box)


def _producer_box(
    producer: OperatorModel,
    result: int,
    consumer: OperatorModel,
    read: Access,
    box: Box,
    clamps: Clamps,
) -> Box | Refusal:
    if read.gathered or not (producer.tileable and consumer.tileable):
        return Refusal("unknown-region", f"{producer.name} -> {consumer.name}")
    wanted = clamps.inside(read.box(box), read.shape) if read.padded else read.box(box)
    return producer.box_for_result(wanted, result)


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
