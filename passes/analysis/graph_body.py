"""Owns the reading of the body of a function or subgraph: operators and edges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from magweld.bindings import ir
from magweld.passes.analysis.operator_model import inputs_of, operator_model
from magweld.passes.analysis.structure import Structure, structure_of
from magweld.passes.ir.cloning import defining_op
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.regions import OperatorModel

# Graphs of so many operators have equal ones: to look for them costs a fifth of what
# the model of one does.
_MANY = 32


@dataclass(frozen=True)
class Edge:
    """A connect that leads from one operator straight to another.

    Attributes:
        connect: The `tile_graph.connect` operation.
        producer: Position of the operator that makes the value.
        consumer: Position of the operator that reads it.
        operand: Which input of the consumer.
        result: Which result of the producer.
    """

    connect: Any
    producer: int
    consumer: int
    operand: int
    result: int


@dataclass(frozen=True)
class GraphBody:
    """Operators in order of appearance and the edges between them.

    Attributes:
        operators: The `tile_graph.operator` operations.
        inputs: The tensors that each reads, connects among them.
        edges: Direct edges only; a reshape between two operators hides them from
            one another.
    """

    operators: tuple[Any, ...]
    inputs: tuple[tuple[Any, ...], ...]
    edges: tuple[Edge, ...]

    @cached_property
    def models(self) -> tuple[OperatorModel, ...]:
        """What the scheduler knows of each operator."""
        if len(self.operators) < _MANY:
            return tuple(map(operator_model, self.operators))
        return tuple(_models(self.operators))

    def group(self, members: list[int]) -> Group:
        """Return the operators at `members`, rising positions, as a group."""
        position = {member: i for i, member in enumerate(members)}
        made_by = {
            (edge.consumer, edge.operand): edge for edge in self.edges_among(position)
        }
        tensors: dict[Any, int] = {}

        def source(member: int, argument: int) -> Source:
            value = source_value(self.inputs[member][argument])
            tensor = tensors.setdefault(value, len(tensors))
            edge = made_by.get((member, argument))
            if edge is None:
                return Source(None, tensor)
            return Source(position[edge.producer], tensor, edge.result)

        sources = tuple(
            tuple(source(member, read.argument) for read in self.models[member].reads)
            for member in members
        )
        models = tuple(self.models[member] for member in members)
        return Group(models, sources, self.outputs(members))

    def edges_among(self, members: Collection[int]) -> list[Edge]:
        """Return the edges that lead from one of `members` to another of them."""
        return [
            edge
            for member in members
            for edge in self.edges_to[member]
            if edge.producer in members
        ]

    @cached_property
    def edges_to(self) -> tuple[tuple[Edge, ...], ...]:
        """For each operator the edges over which it reads."""
        found: list[list[Edge]] = [[] for _ in self.operators]
        for edge in self.edges:
            found[edge.consumer].append(edge)
        return tuple(map(tuple, found))

    @cached_property
    def edges_from(self) -> tuple[tuple[Edge, ...], ...]:
        """For each operator the edges over which others read what it makes."""
        found: list[list[Edge]] = [[] for _ in self.operators]
        for edge in self.edges:
            found[edge.producer].append(edge)
        return tuple(map(tuple, found))

    def outputs(self, members: list[int]) -> tuple[tuple[int, int], ...]:
        """Return (member, result) of what others than members read.

        Members are counted from the first one; the last one is not among them.
        """
        inside = set(members)
        return tuple(
            (node, number)
            for node, member in enumerate(members[:-1])
            for number, readers in enumerate(self._readers[member])
            if not inside.issuperset(readers)
        )

    @cached_property
    def _readers(self) -> tuple[tuple[frozenset[int | None], ...], ...]:
        """Who reads each result of each operator; None is anybody else."""
        consumer_of = {edge.connect: edge.consumer for edge in self.edges}
        return tuple(
            tuple(
                frozenset(consumer_of.get(use.owner.operation) for use in result.uses)
                for result in operator.results
            )
            for operator in self.operators
        )


def source_value(value: Any) -> Any:
    """Return the value behind a connect, or the value itself."""
    producer = defining_op(value)
    if producer is not None and producer.operation.name == "tile_graph.connect":
        return producer.operation.operands[0]
    return value


def read_body(container: Any) -> GraphBody:
    """Read the region of a function or a `tile_graph.subgraph`."""
    block = container.operation.regions[0].blocks[0]
    operators = tuple(
        op.operation
        for op in block.operations
        if op.operation.name == "tile_graph.operator"
    )
    inputs = tuple(tuple(inputs_of(op)) for op in operators)
    position = {op: i for i, op in enumerate(operators)}
    edges: list[Edge] = []
    for consumer, values in enumerate(inputs):
        for operand, value in enumerate(values):
            connect = defining_op(value)
            if connect is None or connect.operation.name != "tile_graph.connect":
                continue
            made = connect.operation.operands[0]
            producer = defining_op(made)
            if producer is not None and producer.operation in position:
                origin = position[producer.operation]
                result = list(producer.operation.results).index(made)
                edge = Edge(connect.operation, origin, consumer, operand, result)
                edges.append(edge)
    return GraphBody(operators, inputs, tuple(edges))


def _models(operators: Sequence[Any]) -> Iterator[OperatorModel]:
    """Yield the model of each operator; that of equal ones is read once."""
    known: dict[Structure, OperatorModel] = {}
    for operator in operators:
        structure = structure_of(operator)
        if structure not in known:
            known[structure] = operator_model(operator)
        name = ir.StringAttr(operator.attributes["op_name"]).value
        yield replace(known[structure], name=name)
