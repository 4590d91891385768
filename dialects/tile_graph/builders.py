"""Owns the functions that make ops of this dialect at the current insertion point.

Builders that open a region give it one empty block with the types of the operands as
arguments; fill it under `ir.InsertionPoint(op.body.blocks[0])` and end it with
`yield_values`. Location and insertion point come from the caller's `with`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from magweld.bindings import ir
from magweld.dialects.tile_graph.attributes import DeviceAttr
from magweld.dialects.tile_graph.ops import (
    ConnectOp,
    GraphOp,
    OperatorOp,
    SubgraphOp,
    YieldOp,
)

OpT = TypeVar("OpT", bound=ir.OpView)


def build_graph(
    inputs: Sequence[ir.Value], result_types: Sequence[ir.Type], device: DeviceAttr
) -> GraphOp:
    """Make a graph for a device, its block empty."""
    return _with_block(GraphOp(result_types, inputs, device))


def build_operator(
    op_name: str, inputs: Sequence[ir.Value], result_types: Sequence[ir.Type]
) -> OperatorOp:
    """Make an operator, its block empty."""
    return _with_block(OperatorOp(result_types, inputs, ir.StringAttr.get(op_name)))


def build_connect(value: ir.Value, level: str) -> ConnectOp:
    """Make an edge from `value` at the named memory level."""
    return ConnectOp(value.type, value, ir.StringAttr.get(level))


def build_subgraph(
    subgraph_name: str,
    inputs: Sequence[ir.Value],
    result_types: Sequence[ir.Type],
    *,
    level: str,
    implementation: str | None = None,
) -> SubgraphOp:
    """Make a subgraph, its block empty; the plan's attributes are set later.

    Args:
        subgraph_name: Name in reports and of the kernel.
        inputs: Operands.
        result_types: Types of the results.
        level: Level at which reuse tiles are kept.
        implementation: "generated", "library", or None if that is not decided.
    """
    subgraph = _with_block(
        SubgraphOp(
            result_types,
            inputs,
            ir.StringAttr.get(subgraph_name),
            ir.StringAttr.get(level),
        )
    )
    if implementation is not None:
        subgraph.attributes["implementation"] = ir.StringAttr.get(implementation)
    return subgraph


def yield_values(values: Sequence[ir.Value]) -> YieldOp:
    """End the current block with the results of its parent."""
    return YieldOp(values)


def _with_block(op: OpT) -> OpT:
    operands = op.operation.operands
    ir.Block.create_at_start(
        op.operation.regions[0],
        [value.type for value in operands],
        [op.operation.location] * len(operands),
    )
    return op
