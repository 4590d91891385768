"""Owns cones: a stored tensor, and the operations that make its tiles from others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from magweld.passes.memory.boxes import Box, whole
from magweld.passes.memory.demands import Nest, joined
from magweld.passes.memory.graph import Graph, Node


@dataclass(frozen=True)
class Use:
    """Bytes that something takes at most.

    Attributes:
        arena: Of the memory that is planned.
        transient: What calls bring themselves: results of libraries, and copies of
            operands in their layout.
    """

    arena: int
    transient: int

    @property
    def total(self) -> int:
        """Both together: the arena stays while others are brought."""
        return self.arena + self.transient


@dataclass(frozen=True)
class Cone:
    """What makes one stored tensor from stored and free ones.

    Attributes:
        graph: The graph.
        root: The tensor.
        members: Operations, in order; views are among them.
        leaves: Tensors that they read from outside.
    """

    graph: Graph
    root: int
    members: tuple[int, ...]
    leaves: tuple[int, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The operations."""
        return tuple(self.graph.nodes[i] for i in self.members)

    @cached_property
    def computing(self) -> tuple[int, ...]:
        """The operations that are no views."""
        return tuple(i for i in self.members if not self.graph.nodes[i].is_view)

    @cached_property
    def tileable(self) -> bool:
        """Whether every operation has a rule."""
        return all(node.rule is not None for node in self.nodes)

    def trace(self, box: Box) -> Trace | None:
        """Return what the operations compute for one tile, None if no rule says."""
        wanted: dict[int, Box] = {self.root: box}
        made: dict[int, Box] = {}
        for node in reversed(self.nodes):
            result = node.results[0]
            if result not in wanted or node.rule is None:
                return None
            demand = node.rule.demand(wanted[result])
            if demand is None:
                return None
            made[result] = demand.made
            for tensor, part in zip(node.operands, demand.needs, strict=True):
                if part is not None:
                    wanted[tensor] = joined(wanted.get(tensor), part)
        # A tile may take nothing at all of one operand of a concatenation.
        return Trace(self, made, {t: wanted[t] for t in self.leaves if t in wanted})


@dataclass(frozen=True)
class Trace:
    """One tile of a cone.

    Attributes:
        cone: The cone.
        made: For each tensor that is made the part.
        read: For each tensor from outside the part that is read.
    """

    cone: Cone
    made: dict[int, Box]
    read: dict[int, Box]

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations."""
        return sum(n.work(self.made[n.results[0]]) for n in self.cone.nodes)

    @cached_property
    def traffic(self) -> int:
        """Bytes that the operations read and write, each on its own."""
        graph, parts = self.cone.graph, {**self.read, **self.made}
        total = 2 * self.staged
        for number in self.cone.computing:
            node = graph.nodes[number]
            tensors = (*node.operands, *node.results)
            total += sum(
                graph.tensors[t].part_bytes(parts[t]) for t in tensors if t in parts
            )
        return total

    @cached_property
    def read_bytes(self) -> int:
        """Bytes of what is read from outside."""
        tensors = self.cone.graph.tensors
        return sum(tensors[t].part_bytes(box) for t, box in self.read.items())

    @cached_property
    def staged(self) -> int:
        """Bytes of the parts that are copied before the tile runs."""
        return sum(
            self.cone.graph.tensors[t].part_bytes(box)
            for t, box in self.read.items()
            if box != whole(self.cone.graph.tensors[t].shape)
        )

    @cached_property
    def use(self) -> Use:
        """What the tile takes of the arena and beside it, with its result."""
        return self._use(with_result=True)

    @cached_property
    def use_in_place(self) -> Use:
        """The same where the result is written to where it is stored."""
        return self._use(with_result=False)

    def _use(self, with_result: bool) -> Use:
        graph, cone = self.cone.graph, self.cone
        last = self._last_readers()
        parts = {**self.read, **self.made}
        arena: dict[int, int] = {}
        brought: dict[int, int] = {}
        most = Use(0, 0)
        for number in cone.computing:
            node = graph.nodes[number]
            result = node.results[0]
            made = graph.tensors[result].part_bytes(self.made[result])
            is_root = result == cone.root
            # What a tile makes is brought by the call; stored tensors are not counted.
            kind = brought if is_root or node.brings_result else arena
            kind[result] = made if with_result or not is_root else 0
            rearranged = made if node.brings_result else 0
            if node.brings_result:
                read = [t for t in node.operands if t in parts]
                rearranged += sum(graph.tensors[t].part_bytes(parts[t]) for t in read)
                if _is_one_sided(node, self.made[result]):
                    # Padded in a copy of its own before.
                    image = read[0]
                    rearranged += graph.tensors[image].part_bytes(parts[image])
            taken = sum(brought.values()) + rearranged
            most = Use(max(most.arena, sum(arena.values())), max(most.transient, taken))
            for live in (arena, brought):
                for tensor in [t for t in live if last.get(t, number + 1) <= number]:
                    del live[tensor]
        return Use(most.arena + self.staged, most.transient)

    def _last_readers(self) -> dict[int, int]:
        """For each tensor of the tile the last operation that reads its bytes."""
        last: dict[int, int] = {}
        for number in self.cone.members:
            for tensor in self.cone.graph.nodes[number].operands:
                if tensor in self.made or tensor in self.read:
                    last[self._source(tensor)] = number
        return last

    def _source(self, tensor: int) -> int:
        """The tensor of this tile whose bytes a view of it has."""
        graph = self.cone.graph
        while tensor in self.made:
            node = graph.nodes[graph.producer[tensor]]
            if not node.is_view:
                break
            tensor = node.operands[0]
        return tensor


def _is_one_sided(node: Node, box: Box) -> bool:
    """Whether a part of a result has more padding on one side of the operand."""
    if not isinstance(node.rule, Nest):
        return False
    loops = node.rule.loops(box)
    amounts = (window.padding(loops) for window in node.rule.windows)
    return any(front != behind for front, behind in amounts)


def find_cone(graph: Graph, root: int, stored: Collection[int]) -> Cone:
    """Return the cone of a tensor down to stored and free ones."""
    members: set[int] = set()
    leaves: dict[int, None] = {}
    waiting = [root]
    while waiting:
        tensor = waiting.pop()
        number = graph.producer[tensor]
        if number in members:
            continue
        members.add(number)
        for operand in graph.nodes[number].operands:
            if graph.tensors[operand].free or operand in stored:
                leaves[operand] = None
            else:
                waiting.append(operand)
    return Cone(graph, root, tuple(sorted(members)), tuple(sorted(leaves)))
