"""Owns twins: equal operators that wait for as many others, and what all read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from magweld.passes.analysis.graph_body import GraphBody, source_value
from magweld.passes.tiling.group import Group


@dataclass(frozen=True)
class Twins:
    """Operators that would be members of one launch.

    Attributes:
        body: The graph.
        readers: For each operation of the block the places of those that read it.
        places: Where in the block each operator stands.
        alone: Each operator as a group.
    """

    body: GraphBody
    readers: Sequence[Sequence[int]]
    places: Sequence[int]
    alone: Sequence[Group]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """For each operator how many equal ones wait for as many others as it does."""
        count = Counter(self._kinds)
        return tuple(count[kind] for kind in self._kinds)

    def shared_bytes(self, members: Sequence[int]) -> int:
        """Return the bytes of the tensors that a group reads and its twins as well."""
        shared = {
            source_value(self.body.inputs[member][read.argument]): read
            for member in members
            for read in self.body.models[member].reads
            if (member, read.argument) in self._shared
        }
        return sum(prod(r.shape) * r.element_bytes for r in shared.values())

    @cached_property
    def _kinds(self) -> tuple[tuple[Group, int], ...]:
        levels = [0] * len(self.readers)
        for place, readers in enumerate(self.readers):
            for reader in readers:
                levels[reader] = max(levels[reader], levels[place] + 1)
        return tuple(
            (group, levels[place])
            for group, place in zip(self.alone, self.places, strict=True)
        )

    @cached_property
    def _shared(self) -> frozenset[tuple[int, int]]:
        """Operators and their arguments that are one tensor for all twins."""
        readers = Counter(self._reads.values())
        return frozenset(
            place
            for place, read in self._reads.items()
            if readers[read] == self.counts[place[0]] > 1
        )

    @cached_property
    def _reads(self) -> dict[tuple[int, int], tuple[Any, ...]]:
        """For each operator and argument its kind and the tensor.

        Twins may read other parts of a tensor: such reads are left out.
        """
        return {
            (member, read.argument): (
                self._kinds[member],
                read.argument,
                source_value(self.body.inputs[member][read.argument]),
            )
            for member, model in enumerate(self.body.models)
            for read in model.reads
            if read.part is None
        }
