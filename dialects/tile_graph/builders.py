"""Owns the functions that make ops of this dialect at the current insertion point.

Builders that open a region give it one empty block; fill it under
`ir.InsertionPoint(op.body.blocks[0])` and end it with `yield_values`. Location and
insertion point come from the caller's `with`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magweld.bindings import gpu, ir
from magweld.dialects.tile_graph.dialect import OpT
from magweld.dialects.tile_graph.ops import (
    ConnectOp,
    OperatorOp,
    SubgraphOp,
)

# More cannot be registered, see `TileGraphDialect`.
MOST_RESULTS = 2


def build_operator(op_name: str, result_types: Sequence[ir.Type]) -> OperatorOp:
    """Make an operator, its block empty.

    Raises:
        ValueError: There are neither one nor two results.
    """
    attributes = {"op_name": ir.StringAttr.get(op_name)}
    return _with_block(OperatorOp, result_types, attributes)


def build_connect(value: ir.Value, level: str) -> ConnectOp:
    """Make an edge from `value` at the named memory level."""
    return ConnectOp(value.type, value, ir.StringAttr.get(level))


def build_subgraph(
    subgraph_name: str,
    result_types: Sequence[ir.Type],
    *,
    level: str,
    implementation: str | None = None,
) -> SubgraphOp:
    """Make a subgraph, its block empty; the plan's attributes are set later.

    Args:
        subgraph_name: Name in reports and of the kernel.
        result_types: Types of the results, one or two.
        level: Level at which reuse tiles are kept.
        implementation: "generated", "library", or None if that is not decided.

    Raises:
        ValueError: There are neither one nor two results.
    """
    attributes = {
        "subgraph_name": ir.StringAttr.get(subgraph_name),
        "level": ir.StringAttr.get(level),
    }
    if implementation is not None:
        attributes["implementation"] = ir.StringAttr.get(implementation)
    return _with_block(SubgraphOp, result_types, attributes)


def yield_values(values: Sequence[ir.Value]) -> ir.OpView:
    """End the current block with the results of its parent, one or two."""
    terminator: ir.OpView = gpu.YieldOp(list(values))
    return terminator


def _with_block(
    kind: type[OpT],
    result_types: Sequence[ir.Type],
    attributes: Mapping[str, ir.Attribute],
) -> OpT:
    if not 1 <= len(result_types) <= MOST_RESULTS:
        raise ValueError(f"expected one or two results, got {len(result_types)}")
    # The constructors of `ext` would add segment sizes, see `read_by_position`.
    operation = ir.Operation.create(
        kind.OPERATION_NAME,
        results=list(result_types),
        attributes=dict(attributes),
        regions=1,
    )
    ir.Block.create_at_start(operation.regions[0], [], [])
    view: OpT = operation.opview
    return view
