"""Owns extract-subgraphs: operators joined below the outermost level become one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    build_subgraph,
    device_of,
    is_tile_graph,
    yield_values,
)
from magweld.passes.analysis.cloning import ValueMap, clone_mapped
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.base import FunctionPass


@dataclass(frozen=True)
class ExtractSubgraphs(FunctionPass):
    """Wrap operators that are connected below the outermost level into subgraphs.

    Welder's ExtractSubgraph: each group becomes one `tile_graph.subgraph` at the
    place of its last operator, with the level of its edges; an operator on its own
    becomes a subgraph of one. Edges between subgraphs stay connects.
    """

    name: ClassVar[str] = "extract-subgraphs"

    def run_on_function(self, function: Any) -> None:
        """Wrap the operators of the graphs of `function`."""
        if not is_tile_graph(function):
            return
        outermost = device_of(function).levels[0].name
        body = read_body(function)
        for number, members in enumerate(_components(body, outermost)):
            _extract(body, members, outermost, number)


def _level(connect: Any) -> str:
    return str(ir.StringAttr(connect.attributes["level"]).value)


def _components(body: GraphBody, outermost: str) -> list[list[int]]:
    """Groups of operator positions, in the order of their last operators."""
    root = list(range(len(body.operators)))

    def find(member: int) -> int:
        while root[member] != member:
            member = root[member]
        return member

    for edge in body.edges:
        if _level(edge.connect) != outermost:
            root[find(edge.producer)] = find(edge.consumer)
    groups: dict[int, list[int]] = {}
    for member in range(len(root)):
        groups.setdefault(find(member), []).append(member)
    return sorted(groups.values(), key=lambda members: members[-1])


def _extract(body: GraphBody, members: list[int], outermost: str, number: int) -> None:
    operators = [body.operators[i] for i in members]
    root = operators[-1]
    inside = {
        edge.connect
        for edge in body.edges
        if edge.producer in members and edge.consumer in members
    }
    levels = [_level(connect) for connect in inside]
    with ir.InsertionPoint(root), root.location:
        subgraph = build_subgraph(
            f"subgraph_{number}",
            [r.type for r in root.results],
            level=_group_level(levels, outermost),
            implementation=_implementation(root),
        )
        _fill(subgraph, body, members, inside)
    for old, new in zip(root.results, subgraph.operation.results, strict=True):
        old.replace_all_uses_with(new)
    _erase(operators, inside)


def _is_result(value: Any) -> bool:
    return not isinstance(value, ir.BlockArgument)


def _group_level(levels: list[str], outermost: str) -> str:
    """The level of the reuse tiles; edges in registers have none."""
    named = [name for name in levels if name != "register"]
    return named[0] if named else (levels[0] if levels else outermost)


def _implementation(root: Any) -> str:
    if "implementation" not in root.attributes:
        return "generated"
    return str(ir.StringAttr(root.attributes["implementation"]).value)


def _fill(subgraph: Any, body: GraphBody, members: list[int], inside: set[Any]) -> None:
    values = ValueMap()
    with ir.InsertionPoint(subgraph.operation.regions[0].blocks[0]):
        for member in members:
            for value in body.inputs[member]:
                if _is_result(value) and value.owner.operation in inside:
                    clone_mapped(value.owner.operation, values)
            clone_mapped(body.operators[member], values)
        root = body.operators[members[-1]]
        yield_values([values[result] for result in root.results])


def _erase(operators: list[Any], inside: set[Any]) -> None:
    """Drop the originals, readers first."""
    for op in reversed(operators):
        connects = {
            use.owner.operation
            for result in op.results
            for use in result.uses
            if use.owner.operation in inside
        }
        for connect in connects:
            connect.erase()
        op.erase()
