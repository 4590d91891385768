"""Owns the propagation of a result tile backwards through a group of operators.

Welder's Propagate (section 4.2): given the tile of the last operator, the tile of
every producer and the region of every operand follow from the access expressions.
Regions are boxes that hold for every tile position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

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
        tile: Sizes along the root's parallel loops; each divides its extent.
        blocks: What of a dimension exists at a time; all of everything by default.
    """
    boxes: list[tuple[Interval, ...] | None] = [None] * len(group.nodes)
    boxes[-1] = group.root.root_box(tile)
    clamps = Clamps(len(group.root.extents))
    for consumer in reversed(range(len(group.nodes))):
        node, box = group.nodes[consumer], boxes[consumer]
        if box is None:
            return Refusal("dead-producer", f"{node.name} has no consumer in the group")
        if blocks is not None:
            box = boxes[consumer] = blocks.of_node(consumer, box)
        for read, position, result in group.inner_reads[consumer]:
            producer = group.nodes[position]
            wanted = _producer_box(producer, result, node, read, box, clamps)
            if isinstance(wanted, Refusal):
                return wanted
            merged = _merge(producer, boxes[position], wanted)
            if isinstance(merged, Refusal):
                return merged
            boxes[position] = merged
    final = tuple(box for box in boxes if box is not None)
    refusal = _written_twice(group, tile, final)
    if refusal is not None:
        return refusal
    # An empty result is one tile: nothing is computed, everything is well-formed.
    grid = math.prod(
        max(1, -(-e // t)) for e, t in zip(group.root.grid_extents, tile, strict=True)
    )
    return Tiles(
        final, grid, _recompute(group, final, grid, blocks), clamps.known, blocks
    )


def _written_twice(
    group: Group, tile: tuple[int, ...], boxes: tuple[tuple[Interval, ...], ...]
) -> Refusal | None:
    """Refuse tiles that store an element of an output twice, or leave one out."""
    for node, result in group.outputs:
        write = group.nodes[node].writes[result]
        if not is_partition(write.shape, write.box(boxes[node]), group.root, tile):
            detail = f"tiles do not store each element of {group.nodes[node].name} once"
            return Refusal("written-twice", detail)
    return None


def _producer_box(
    producer: OperatorModel,
    result: int,
    consumer: OperatorModel,
    read: Access,
    box: tuple[Interval, ...],
    clamps: Clamps,
) -> tuple[Interval, ...] | Refusal:
    if read.gathered or not (producer.tileable and consumer.tileable):
        return Refusal("unknown-region", f"{producer.name} -> {consumer.name}")
    wanted = clamps.inside(read.box(box), read.shape) if read.padded else read.box(box)
    return producer.box_for_result(wanted, result)


def _merge(
    producer: OperatorModel,
    known: tuple[Interval, ...] | None,
    new: tuple[Interval, ...],
) -> tuple[Interval, ...] | Refusal:
    """Join what two consumers need: the least box that holds both at every position."""
    if known is None or known == new:
        return new
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


def _recompute(
    group: Group,
    boxes: tuple[tuple[Interval, ...], ...],
    grid: int,
    blocks: Blocks | None,
) -> float:
    done = sum(
        _points(box, position, blocks) * weight
        for position, (box, weight) in enumerate(zip(boxes, group.weights, strict=True))
    )
    return done * grid / max(1, group.arithmetic)
