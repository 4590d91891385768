"""Owns extract-subgraphs: operators joined below the outermost level become one op."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    MOST_RESULTS,
    TileAttr,
    build_subgraph,
    device_of,
    is_tile_graph,
    set_tile,
    yield_values,
)
from magweld.passes.analysis.dependences import sort_block
from magweld.passes.analysis.graph_body import GraphBody, read_body, source_value
from magweld.passes.analysis.stream_marks import STEP
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.ir.utils import located_error
from magweld.passes.tile.components import components
from magweld.targets.device import Device


@dataclass(frozen=True)
class ExtractSubgraphs(FunctionPass):
    """Wrap operators that are connected below the outermost level into subgraphs.

    Welder's ExtractSubgraph: each group becomes one `tile_graph.subgraph` at the
    place of its last operator, with the level of its edges; an operator on its own
    becomes a subgraph of one. Edges between subgraphs stay connects. What operators
    before the last one make for readers elsewhere becomes a result too; operations
    that read it move behind the subgraph. A tile that a plan gave to the last operator
    is that of the subgraph.
    """

    name: ClassVar[str] = "extract-subgraphs"

    def run_on_function(self, function: Any) -> None:
        """Wrap the operators of the graphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        body = read_body(function)
        components = _components(body, device.levels[0].name)
        for members in components:
            _check_results(body, members)
        for number, members in enumerate(components):
            _extract(body, members, device, number)
        sort_block(function.regions[0].blocks[0])


def _level(connect: Any) -> str:
    return str(ir.StringAttr(connect.attributes["level"]).value)


def _components(body: GraphBody, outermost: str) -> list[list[int]]:
    """Groups of operator positions, in the order of their last operators."""
    inner = (edge for edge in body.edges if _level(edge.connect) != outermost)
    pairs = ((edge.consumer, edge.producer) for edge in inner)
    groups = components(len(body.operators), pairs)
    return sorted(groups, key=lambda members: members[-1])


def _check_results(body: GraphBody, members: list[int]) -> None:
    """Make sure that a subgraph can have a result for all that is read elsewhere.

    Raises:
        PassError: There are more than operations of the dialect can have.
    """
    found = len(_stored(body, members))
    if found > MOST_RESULTS:
        raise located_error(
            body.operators[members[-1]],
            f"ends a group that makes {found} tensors for others, expected at most "
            f"{MOST_RESULTS}",
        )


def _stored(body: GraphBody, members: list[int]) -> list[Any]:
    """What the last operator makes, and what others make for readers elsewhere."""
    inner = [
        body.operators[members[node]].results[result]
        for node, result in body.outputs(members)
    ]
    return [*body.operators[members[-1]].results, *inner]


def _extract(body: GraphBody, members: list[int], device: Device, number: int) -> None:
    operators = [body.operators[i] for i in members]
    stored = _stored(body, members)
    root = operators[-1]
    inside = {
        edge.connect: _level(edge.connect) for edge in body.edges_among(set(members))
    }
    with ir.InsertionPoint(root), root.location:
        subgraph = build_subgraph(
            f"subgraph_{number}",
            [value.type for value in stored],
            level=_group_level(set(inside.values()), device),
            implementation=_implementation(root),
        )
        if STEP in root.attributes:
            subgraph.operation.attributes[STEP] = root.attributes[STEP]
            del root.attributes[STEP]
        _fill(subgraph, body, members, stored)
        if "tile" in root.attributes:
            set_tile(subgraph.operation, TileAttr(root.attributes["tile"]).sizes)
    for old, new in zip(stored, subgraph.operation.results, strict=True):
        # Edges inside go with the operators.
        _replace_uses(old, new, inside)
    _erase(operators, inside)


def _replace_uses(old: Any, new: Any, kept: Collection[Any]) -> None:
    for use in list(old.uses):
        if use.owner.operation not in kept:
            use.owner.operation.operands[use.operand_number] = new


def _group_level(levels: set[str], device: Device) -> str:
    """The outermost of the edges' levels; that of the device if there are none."""
    names = device.level_names()
    return min(levels or {names[0]}, key=names.index)


def _implementation(root: Any) -> str:
    if "implementation" not in root.attributes:
        return "generated"
    return str(ir.StringAttr(root.attributes["implementation"]).value)


def _fill(
    subgraph: Any, body: GraphBody, members: list[int], stored: list[Any]
) -> None:
    values = ValueMap()
    made = {result for i in members for result in body.operators[i].results}
    with ir.InsertionPoint(subgraph.operation.regions[0].blocks[0]):
        for member in members:
            for value in body.inputs[member]:
                if value != source_value(value) and source_value(value) in made:
                    clone_mapped(value.owner.operation, values)
            clone_mapped(body.operators[member], values)
        yield_values([values[result] for result in stored])


def _erase(operators: list[Any], inside: Collection[Any]) -> None:
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
