"""Owns groups: operators that may share a kernel, and what they read of each other."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from magweld.passes.tiling.loop_nests import LoopNests, loop_nests
from magweld.passes.tiling.regions import Access, LinearIndex, OperatorModel


@dataclass(frozen=True)
class Source:
    """Where one read of a node comes from.

    Attributes:
        producer: Position of the producing node in the group, or None.
        tensor: Number that is equal for equal tensors.
        result: Which result of the producer it is.
    """

    producer: int | None
    tensor: int
    result: int = 0


@dataclass(frozen=True)
class Group:
    """Operators in topological order; what the last one makes is stored whole.

    Attributes:
        nodes: The operators.
        sources: For each node one source a read.
        outputs: (node, result) of what other nodes make and is stored whole as well,
            since it is read outside of the group.
    """

    nodes: tuple[OperatorModel, ...]
    sources: tuple[tuple[Source, ...], ...]
    outputs: tuple[tuple[int, int], ...] = ()

    def __hash__(self) -> int:
        """Return the hash, which is taken once: groups are keys of every plan."""
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.nodes, self.sources, self.outputs))

    @property
    def root(self) -> OperatorModel:
        """The operator whose tile is chosen."""
        return self.nodes[-1]

    @property
    def stored(self) -> tuple[Access, ...]:
        """The tensors that the group writes."""
        inner = (self.nodes[node].writes[result] for node, result in self.outputs)
        return (*self.root.writes, *inner)

    def consumers(self, position: int) -> tuple[int, ...]:
        """Return the nodes that read what node `position` makes, once a read."""
        return self._consumers[position]

    @functools.cached_property
    def inner_reads(self) -> tuple[tuple[tuple[Access, int, int], ...], ...]:
        """For each node what it reads of others: how, the producer and its result."""
        return tuple(
            tuple(
                (read, source.producer, source.result)
                for read, source in zip(node.reads, sources, strict=True)
                if source.producer is not None
            )
            for node, sources in zip(self.nodes, self.sources, strict=True)
        )

    @functools.cached_property
    def inner_read_numbers(self) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """For each node what it reads of others: number, the producer, its result."""
        return tuple(
            tuple(
                (number, source.producer, source.result)
                for number, source in enumerate(sources)
                if source.producer is not None
            )
            for sources in self.sources
        )

    @functools.cached_property
    def outer_reads(self) -> tuple[tuple[int, int, int], ...]:
        """(node, read, tensor), all numbers, of every read from outside the group."""
        return tuple(
            (position, number, source.tensor)
            for position, sources in enumerate(self.sources)
            for number, source in enumerate(sources)
            if source.producer is None
        )

    @functools.cached_property
    def weights(self) -> tuple[int, ...]:
        """What an iteration of each node counts for in its arithmetic."""
        return tuple(max(1, node.flops) for node in self.nodes)

    @functools.cached_property
    def arithmetic(self) -> int:
        """What all of them count for if nothing is computed twice."""
        return sum(
            node.iterations * weight
            for node, weight in zip(self.nodes, self.weights, strict=True)
        )

    @functools.cached_property
    def _consumers(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for consumer, sources in enumerate(self.sources):
            for source in sources:
                if source.producer is not None:
                    found[source.producer].append(consumer)
        return tuple(map(tuple, found))

    def alone(self, position: int) -> Group:
        """Return one node as a group of its own, reading everything from outside."""
        tensors: dict[int, int] = {}
        sources = tuple(
            Source(None, tensors.setdefault(source.tensor, len(tensors)))
            for source in self.sources[position]
        )
        return Group((self.nodes[position],), (sources,))

    def with_slices_moved(self) -> Group:
        """Return the group with what it reads of sliced tensors moved to their front.

        Groups that differ in nothing but where their slices begin become equal. Slices
        of one tensor keep their distances.
        """
        reads_of: dict[int, list[tuple[int, int]]] = {}
        for position, number, tensor in self.outer_reads:
            reads_of.setdefault(tensor, []).append((position, number))
        nodes = list(self.nodes)
        for places in reads_of.values():
            reads = [self.nodes[node].reads[number] for node, number in places]
            for (node, number), read in zip(places, _moved(reads), strict=True):
                changed = list(nodes[node].reads)
                changed[number] = read
                nodes[node] = replace(nodes[node], reads=tuple(changed))
        return replace(self, nodes=tuple(nodes))

    def stays_in_registers(self, position: int) -> bool:
        """Whether the loop nests that read what a node makes compute it."""
        return self.nests().is_fused(position)

    def nests(self, kept: frozenset[int] = frozenset()) -> LoopNests:
        """Return which nodes run as one loop nest.

        Args:
            kept: Nodes whose values are wanted as tiles in any case.
        """
        if kept not in self._nests:
            self._nests[kept] = loop_nests(self, kept)
        return self._nests[kept]

    @functools.cached_property
    def _nests(self) -> dict[frozenset[int], LoopNests]:
        return {}


def _moved(reads: Sequence[Access]) -> list[Access]:
    """Return reads of one tensor with the least constant of each dimension removed."""
    indices = [[expr for expr in read.index if expr is not None] for read in reads]
    # A border and a dimension without a known index have a place of their own.
    if any(
        read.part is None or read.padded or len(known) < len(read.index)
        for read, known in zip(reads, indices, strict=True)
    ):
        return list(reads)
    least = [min(e.constant for e in dim) for dim in zip(*indices, strict=True)]
    return [
        replace(
            read,
            index=tuple(
                LinearIndex(expr.terms, expr.constant - first)
                for expr, first in zip(known, least, strict=True)
            ),
        )
        for read, known in zip(reads, indices, strict=True)
    ]
