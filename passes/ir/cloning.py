"""Owns the cloning of operations under a mapping of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from magweld.bindings import affine, ir
from magweld.dialects.tile_graph import captured_values


class ValueMap:
    """Maps values of one body to values of another; unknown values stay themselves."""

    def __init__(self) -> None:
        """Make an empty map."""
        self._map: dict[Any, Any] = {}

    def __setitem__(self, old: Any, new: Any) -> None:
        self._map[old] = new

    def __getitem__(self, old: Any) -> Any:
        return self._map.get(old, old)

    def __contains__(self, old: Any) -> bool:
        return old in self._map


def clone_mapped(op: Any, values: ValueMap) -> Any:
    """Clone `op` at the insertion point, operands and captures replaced.

    Results of the clone are added to `values`.
    """
    clone = op.operation.clone()
    _replace_operands(clone, values)
    for old, new in zip(op.operation.results, clone.results, strict=True):
        values[old] = new
    return clone


def _replace_operands(op: Any, values: ValueMap) -> None:
    for position, operand in enumerate(op.operands):
        if operand in values:
            op.operands[position] = values[operand]
    for nested in nested_operations(op):
        _replace_operands(nested, values)


def nested_operations(op: Any) -> Iterator[Any]:
    """Yield the operations directly inside the regions of `op`."""
    for region in op.operation.regions:
        for block in region.blocks:
            for nested in block.operations:
                yield nested.operation


def defining_op(value: Any) -> Any | None:
    """Return the operation that makes `value`, or None for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner


def clone_helper(value: Any, helpers: ValueMap) -> None:
    """Make a value without data again, with what it is made of."""
    producer = defining_op(value)
    if value in helpers or producer is None:
        return
    for operand in [*producer.operation.operands, *captured_values(producer)]:
        clone_helper(operand, helpers)
    clone_mapped(producer, helpers)


def nested_deeply(op: Any) -> Iterator[Any]:
    """Yield the operations inside the regions of `op`, at any depth."""
    for nested in nested_operations(op):
        yield nested
        yield from nested_deeply(nested)


def shift_indices(root: Any, start_of: Callable[[int], Any | None]) -> None:
    """Add where a tile begins to what `linalg.index` gives inside `root`.

    Args:
        root: The operation on the tile.
        start_of: Makes the value to add for a dimension, in front of `root`; None if
            the tile begins where the whole does.
    """
    d0, d1 = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
    add = ir.AffineMap.get(2, 0, [d0 + d1])
    for op in list(nested_deeply(root)):
        if op.name != "linalg.index":
            continue
        uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
        with ir.InsertionPoint(root), op.location:
            start = start_of(ir.IntegerAttr(op.attributes["dim"]).value)
        if start is None or not uses:
            continue
        with ir.InsertionPoint.after(op), op.location:
            moved = affine.AffineApplyOp(add, [op.results[0], start]).result
        for user, position in uses:
            user.operands[position] = moved
