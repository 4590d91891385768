"""Owns refusals of merges that differ in the part of a concatenation alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magweld.passes.analysis.graph_body import Edge, GraphBody, source_value
from magweld.passes.tile.grouping import Grouping
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import Access, OperatorKind

Members = tuple[int, ...]


@dataclass
class AlikeMerges:
    """Knows why groups did not go into a concatenation.

    Which part of it equal groups make changes no cost. With as many parts as groups,
    each of which is planned with all parts, time would be quadratic in their number.

    Attributes:
        body: The graph.
    """

    body: GraphBody
    _refused: dict[Hashable, tuple[Members, Refusal]] = field(default_factory=dict)
    _tensors: dict[Members, frozenset[Any]] = field(default_factory=dict)
    _operands: dict[int, Mapping[int, Access]] = field(default_factory=dict)

    def form(
        self, grouping: Grouping, parts: tuple[int, ...], group: Group, count: Members
    ) -> Hashable | None:
        """Return what is equal for alike merges, None if this has to be judged.

        Args:
            grouping: What is grouped already.
            parts: The groups; the root of the last one is that of all.
            group: The first of them.
            count: How many equal ones each operator of the first has, and the bytes
                that all of these read.
        """
        made, joined = (grouping.clusters[part].members for part in parts[-2:])
        edges = self._between(grouping, made, parts[-1])
        models = self.body.models
        if len(parts) != 2 or any(
            models[edge.consumer].kind is not OperatorKind.CONCATENATION
            for edge in edges
        ):
            return None
        shared = self._reads_of(made) & self._reads_of(joined)
        if shared or self.body.outputs([*made, *joined]):
            return None
        read = tuple(
            (made.index(edge.producer), edge.result, edge.consumer, self._read(edge))
            for edge in edges
        )
        return group, joined, count, read

    def known(self, form: Hashable | None, made: Members) -> Refusal | None:
        """Return why a merge of a form was refused, for the group that is to go in."""
        if form is None or form not in self._refused:
            return None
        first, refusal = self._refused[form]
        pairs = zip(first, made, strict=True)
        models = self.body.models
        return renamed(refusal, {models[a].name: models[b].name for a, b in pairs})

    def keep(self, form: Hashable | None, made: Members, refusal: Refusal) -> None:
        """Remember why a merge was refused."""
        if form is not None:
            self._refused[form] = (made, refusal)

    def _between(self, grouping: Grouping, made: Members, root: int) -> list[Edge]:
        return [
            edge
            for member in made
            for edge in self.body.edges_from[member]
            if grouping.root_of.get(edge.consumer) == root
        ]

    def _reads_of(self, members: Members) -> frozenset[Any]:
        """The tensors that operators read."""
        if members not in self._tensors:
            self._tensors[members] = frozenset(
                source_value(value)
                for member in members
                for value in self.body.inputs[member]
            )
        return self._tensors[members]

    def _read(self, edge: Edge) -> Access:
        """How an operand is read, whichever it is; a concatenation reads all."""
        if edge.consumer not in self._operands:
            reads = self.body.models[edge.consumer].reads
            alike = {read.argument: replace(read, argument=0) for read in reads}
            self._operands[edge.consumer] = alike
        return self._operands[edge.consumer][edge.operand]


def renamed(refusal: Refusal, names: Mapping[Any, str]) -> Refusal:
    """Return a refusal that names other operators."""
    words = [names.get(word, word) for word in refusal.detail.split(" ")]
    return Refusal(refusal.rule, " ".join(words), refusal.excess)
