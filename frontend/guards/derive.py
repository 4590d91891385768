"""Owns the derivation of guards from the RefGraph of a run."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from magweld.frontend.expressions.expressions import Condition, Expression
from magweld.frontend.guards.builder import Builder
from magweld.frontend.guards.checks import ClassGuards, ClassLookup, StateCheck
from magweld.frontend.guards.guard import Category, GuardProgram, shown
from magweld.frontend.guards.predicates import guard_predicates
from magweld.frontend.guards.tensors import guard_tensors
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.state.draws import Draw
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph


@dataclass(frozen=True)
class Arguments:
    """The arguments of the recorded call.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        names: Readable names of the positional ones, if they have any.
    """

    args: Sequence[Any]
    kwargs: dict[str, Any]
    names: tuple[str, ...] = ()

    def name(self, index: int) -> str:
        """Return the name of a positional argument."""
        return self.names[index] if self.names else f"args[{index}]"


def derive_guards(
    graph: RefGraph,
    recorder: OperatorRecorder,
    arguments: Arguments,
    state: tuple[Any, ...],
    fetched: Sequence[Node | Expression],
    conditions: Sequence[Condition],
    dims: Mapping[Node, frozenset[int]],
    numbers: Mapping[fx.Node, Expression],
) -> GuardProgram:
    """Turn what a run has read into the guards of its record.

    Args:
        recorder: Which tensors take part.
        state: Modes of torch before the run.
        fetched: External objects and lifted values that a hit needs, in this order.
        conditions: What must hold of lifted values.
        dims: Lifted dimensions of graph inputs.
        numbers: What the numbers are that operators take.

    Returns:
        Guards in the order: arguments, modes, classes, reads, aliases, tensors,
        predicates, lifted values.
    """
    builder = Builder(graph)
    builder.signature(arguments.args, arguments.kwargs)
    for index, value in enumerate(arguments.args):
        builder.argument("args", index, value, arguments.name(index))
    for key, value in arguments.kwargs.items():
        builder.argument("kwargs", key, value, key)
    builder.external(
        Category.STATE,
        "grad mode, autocast, default dtype, mode stacks",
        "as recorded",
        StateCheck(state).holds,
    )
    _guard_classes(builder, graph)
    for node in graph.nodes.values():
        if node.constant:
            builder.constant(node)
    for edge in graph.edges.values():
        builder.edge(edge)
    _guard_identities(builder, graph)
    builder.listing.end_reads()
    guard_tensors(builder, recorder, dims)
    guard_predicates(builder, recorder, numbers)
    for condition in conditions:
        builder.expressions.condition(condition)
    for draw in graph.draws:
        expected = f"gives {shown(draw.value)} again"
        kind = "random number" if isinstance(draw, Draw) else "cached answer"
        builder.listing.guard(Category.PREDICATE, kind, expected, draw.where)
    return builder.finish(fetched)


def _guard_classes(builder: Builder, graph: RefGraph) -> None:
    edges = [e for e in graph.edges.values() if e.kind is Kind.CLASS_ATTRIBUTE]
    if edges:
        lookups = [ClassLookup(e.container.obj, e.key, e.value) for e in edges]
        builder.lookups(ClassGuards(lookups), edges)


def _guard_identities(builder: Builder, graph: RefGraph) -> None:
    for (left, right), where in graph.identities.items():
        builder.distinct(graph.nodes[left], graph.nodes[right], where)
    _guard_members(builder, graph)
    external = [
        node for node in graph.nodes.values() if node.external and not node.constant
    ]
    written = graph.written()
    for node in written:
        for other in external:
            if other is not node and type(other.obj) is type(node.obj):
                builder.distinct(node, other, None)
    _guard_apart(builder, graph, [node for node in written if not node.constant])


def _guard_apart(builder: Builder, graph: RefGraph, written: Sequence[Node]) -> None:
    """Guard that what is written is no object that the record holds and has read."""
    held: dict[type, dict[int, Any]] = {type(node.obj): {} for node in written}
    for edge in graph.edges.values() if held else ():
        container = edge.container
        if container.constant and type(container.obj) in held:
            held[type(container.obj)][id(container.obj)] = container.obj
    for node in written:
        others = held[type(node.obj)]
        if others:
            builder.external(
                Category.ALIAS,
                graph.paths.of(node),
                f"is none of {len(others)} objects that the record holds",
                functools.partial(_is_none_of, others),
                [node],
            )


def _is_none_of(held: Mapping[int, Any], obj: Any) -> bool:
    return id(obj) not in held


def _guard_members(builder: Builder, graph: RefGraph) -> None:
    for node in list(graph.nodes.values()):
        if not node.external and type(node.obj) in (set, frozenset, dict):
            # The number of elements tells how many different objects came in.
            graph.distinct_members(node.obj, tuple(node.obj))
    groups = {tuple(group) for group in graph.members.values()}
    for keys in groups:
        nodes = [graph.nodes[key] for key in keys]
        if sum(not node.constant for node in nodes) > 0 and len(nodes) > 1:
            path = (
                f"elements of a set: {', '.join(map(graph.paths.of, nodes[:2]))}, ..."
            )
            expected = "pairwise distinct"
            builder.external(Category.ALIAS, path, expected, all_distinct, nodes)


def all_distinct(*objects: Any) -> bool:
    """Return whether no object appears twice."""
    return len(set(map(id, objects))) == len(objects)
