"""Owns what operators do and read for boxes of their iterations, found once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from magweld.passes.tiling.clamps import Clamps
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.regions import Access, Interval, OperatorModel
from magweld.passes.tiling.stream import Blocks

Box = tuple[Interval, ...]

# How many operators are looked at as one with what they alone read of each other: a
# chain is walked by recursion.
MOST_DEEP = 100


@dataclass(frozen=True)
class OperatorTile:
    """What an operator does for one tile of a group, or for one block of it.

    Attributes:
        model: The operator.
        box: Its iterations, one interval a loop.
        times: How often a tile runs them: once, or once for each block.
        points: How many iterations a tile runs.
        outside: Of each read, whether it is of a tensor from outside of the group.
        known: What others found out of it, by what that is: nothing that depends on
            what else is in its group.
    """

    model: OperatorModel
    box: Box
    times: int
    points: int
    outside: tuple[bool, ...]
    known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def results(self) -> int:
        """How many elements of a result it makes."""
        return math.prod(self.model.tile_of(self.box))

    @cached_property
    def read_boxes(self) -> tuple[Box, ...]:
        """The boxes of the tensors that it reads."""
        return tuple([read.box(self.box) for read in self.model.reads])


class Need(NamedTuple):
    """What an operator, and what it alone reads, do and read for a box.

    Attributes:
        part: What the operator does.
        weight: What the arithmetic of all of them counts for.
        inner: What those need that this one alone reads.
        wanted: What others have to make, in the order of `Node.wanted`; None where
            that is not known.
        known: What others found out of all of it, by what that is.
    """

    part: OperatorTile
    weight: int
    inner: tuple[Need, ...]
    wanted: tuple[Box | None, ...]
    known: dict[str, Any]


@dataclass(frozen=True)
class Node:
    """A node of a group, with the nodes that it alone reads.

    Attributes:
        position: Of the node in the group.
        inner: The nodes that it alone reads, in the order of its reads.
        wanted: (maker, reader) of what all of these read of other nodes.
        depth: The most nodes that read each other, this one among them.
        number: Equal for equal nodes of all groups.
        known: What they need, by the identity of the box of this one.
        parts: What this one alone does, likewise; shared by equal operators, whatever
            they read.
    """

    position: int
    inner: tuple[Node, ...]
    wanted: tuple[tuple[int, int], ...]
    depth: int
    number: int
    known: dict[int, Need]
    parts: dict[int, OperatorTile]


class Needs:
    """What operators need, found once for all groups that end in as many loops.

    Groups grow from each other: most of what is asked for one of them was found for
    another. Equal boxes are one object, so that looking for them is cheap.
    """

    def __init__(self, loops: int) -> None:
        """Know nothing yet.

        Args:
            loops: How many the last operators of the groups have.
        """
        self.clamps = Clamps(loops)
        self._boxes: dict[Box, Box] = {}
        self._found: dict[Any, tuple[int, dict[int, Need]]] = {}
        self._parts: dict[Any, dict[int, OperatorTile]] = {}

    def same(self, box: Box) -> Box:
        """Return the one object that stands for all equal boxes, and lives as long."""
        return self._boxes.setdefault(box, box)

    def nodes(self, group: Group, blocks: Blocks | None) -> list[Node]:
        """Return the nodes of a group that others hold none of, the last one first."""
        found: list[Node] = []
        for position in range(len(group.nodes)):
            found.append(self._node(group, position, found, blocks))
        inside = {part.position for node in found for part in node.inner}
        return [node for node in reversed(found) if node.position not in inside]

    def _node(
        self, group: Group, position: int, before: list[Node], blocks: Blocks | None
    ) -> Node:
        inner: list[Node] = []
        wanted: list[tuple[int, int]] = []
        makers: list[tuple[Any, int]] = []
        for read, made, result in group.inner_reads[position]:
            maker = before[made]
            if _is_alone(group, position, read, made) and maker.depth < MOST_DEEP:
                inner.append(maker)
                wanted += maker.wanted
                makers.append((maker.number, result))
            else:
                wanted.append((made, position))
                makers.append((group.nodes[made], result))
        walked = None if blocks is None else blocks.along(position)
        alone = (group.nodes[position], _outside(group, position), walked)
        key = (alone, *makers)
        number, known = self._found.setdefault(key, (len(self._found), {}))
        parts = self._parts.setdefault(alone, {})
        depth = 1 + max((node.depth for node in inner), default=0)
        return Node(position, tuple(inner), tuple(wanted), depth, number, known, parts)

    def of_node(
        self, group: Group, node: Node, whole: Box, blocks: Blocks | None
    ) -> Need:
        """Return what a node of a group needs for a box."""
        known = node.known.get(id(whole))
        if known is not None:
            return known
        part = node.parts.get(id(whole))
        if part is None:
            part = self._part(group, node.position, whole, blocks)
            node.parts[id(whole)] = part
        weight = part.points * group.weights[node.position]
        inside = {one.position: one for one in node.inner}
        inner: list[Need] = []
        wanted: list[Box | None] = []
        for number, made, result in group.inner_read_numbers[node.position]:
            box = self._made(group.nodes[made], result, part, number)
            if box is not None and made in inside:
                need = self.of_node(group, inside[made], box, blocks)
                weight += need.weight
                inner.append(need)
                wanted += need.wanted
            else:
                wanted.append(box)
        need = Need(part, weight, tuple(inner), tuple(wanted), {})
        node.known[id(whole)] = need
        return need

    def _part(
        self, group: Group, position: int, box: Box, blocks: Blocks | None
    ) -> OperatorTile:
        walked = None if blocks is None else blocks.along(position)
        points, times = math.prod([interval.size for interval in box]), 1
        if blocks is not None and walked is not None:
            box = self.same(blocks.of_node(position, box))
            one = math.prod([interval.size for interval in box])
            points, times = one // blocks.size * blocks.stream.extent, blocks.count
        outside = _outside(group, position)
        return OperatorTile(group.nodes[position], box, times, points, outside)

    def _made(
        self, maker: OperatorModel, result: int, reader: OperatorTile, number: int
    ) -> Box | None:
        """Return what of a maker's iterations is read, None if that is not known."""
        key = (number, maker, result)
        if key not in reader.known:
            reader.known[key] = self._find_made(maker, result, reader, number)
        found: Box | None = reader.known[key]
        return found

    def _find_made(
        self, maker: OperatorModel, result: int, reader: OperatorTile, number: int
    ) -> Box | None:
        read = reader.model.reads[number]
        if not _is_known(maker, reader.model, read):
            return None
        box = reader.read_boxes[number]
        if read.padded:
            box = self.clamps.inside(box, read.shape)
        return self.same(maker.box_for_result(box, result))


def _outside(group: Group, position: int) -> tuple[bool, ...]:
    return tuple([source.producer is None for source in group.sources[position]])


def _is_alone(group: Group, reader: int, read: Access, maker: int) -> bool:
    """Whether one read is all that becomes of what a node makes."""
    return (
        len(group.consumers(maker)) == 1
        and all(node != maker for node, _ in group.outputs)
        and _is_known(group.nodes[maker], group.nodes[reader], read)
    )


def _is_known(maker: OperatorModel, reader: OperatorModel, read: Access) -> bool:
    """Whether it follows from a box of a reader what it reads of a maker."""
    return not read.gathered and maker.tileable and reader.tileable
