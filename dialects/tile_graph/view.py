"""Owns reading graphs: their device, their operators, and edges seen through."""

from __future__ import annotations

from magweld.bindings import ir
from magweld.dialects.device_attributes import device_from_attribute
from magweld.dialects.tile_graph.ops import (
    ConnectOp,
    GraphOp,
    OperatorOp,
    SubgraphOp,
)
from magweld.targets.device import Device


def device_of(graph: ir.Operation | ir.OpView) -> Device:
    """Return the device of a `tile_graph.graph`."""
    return device_from_attribute(graph.operation.attributes["device"])


def operators_of(container: ir.Operation | ir.OpView) -> list[OperatorOp]:
    """Return the operators directly in a graph or subgraph, in order."""
    return [op for op in _body(container) if isinstance(op, OperatorOp)]


def connects_of(container: ir.Operation | ir.OpView) -> list[ConnectOp]:
    """Return the edges directly in a graph or subgraph, in order."""
    return [op for op in _body(container) if isinstance(op, ConnectOp)]


def subgraphs_of(graph: ir.Operation | ir.OpView) -> list[SubgraphOp]:
    """Return the subgraphs of a graph, in order."""
    return [op for op in _body(graph) if isinstance(op, SubgraphOp)]


def connected_value(value: ir.Value) -> ir.Value:
    """Return the value behind a connect; any other value is returned as it is."""
    if isinstance(value, ir.BlockArgument):
        return value
    op = value.owner.opview
    return op.input if isinstance(op, ConnectOp) else value


def consumers_of(op: ir.Operation | ir.OpView) -> list[ir.OpView]:
    """Return who reads the results of `op`, connects seen through, once per use."""
    consumers: list[ir.OpView] = []
    for result in op.operation.results:
        for use in result.uses:
            user = use.owner.operation.opview
            is_edge = isinstance(user, ConnectOp)
            consumers += consumers_of(user) if is_edge else [user]
    return consumers


def _body(container: ir.Operation | ir.OpView) -> list[ir.OpView]:
    return list(container.operation.regions[0].blocks[0].operations)
