"""Owns the root operation of an operator on tiles in the place of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magweld.bindings import ir, tensor
from magweld.dialects.tile_graph import captured_values
from magweld.passes.ir.cloning import (
    ValueMap,
    clone_helper,
    clone_mapped,
    nested_deeply,
    shift_indices,
)
from magweld.passes.plan.tile_slices import Box, TileSlicer
from magweld.passes.tiling.regions import ZERO, Access


class RootOnTiles:
    """The root of an operator for a box of its iterations."""

    def __init__(
        self, root: Any, accesses: Sequence[Access], box: Box, slicer: TileSlicer
    ) -> None:
        """Make the positions that the root asks for, at the insertion point.

        Args:
            root: The operation on tensors.
            accesses: How it accesses each operand.
            box: Its iterations.
            slicer: Makes positions.
        """
        self._root = root
        self._regions = [access.box(box) for access in accesses]
        self._slicer = slicer
        asked = {
            ir.IntegerAttr(op.attributes["dim"]).value
            for op in nested_deeply(root)
            if op.name == "linalg.index"
        }
        offsets = {loop: box[loop].offset for loop in sorted(asked)}
        self._starts = {
            loop: slicer.index(offset)
            for loop, offset in offsets.items()
            if offset != ZERO
        }

    def clone(
        self, tiles: Mapping[int, Any], into: Mapping[int, Any], helpers: ValueMap
    ) -> list[Any]:
        """Make the operation at the insertion point and return its results.

        Args:
            tiles: What stands for operands, by position; others are made here.
            into: What results are computed into, by position of the operand.
            helpers: What stands for values that its body reads from outside.
        """
        root, operands = self._root, dict(tiles)
        for position, region in enumerate(self._regions):
            if position not in operands:
                value, place = root.operands[position], into.get(position)
                operands[position] = made_tile(
                    value, region, place, helpers, self._slicer
                )
        for value in captured_values(root):
            clone_helper(value, helpers)
        clone = clone_mapped(root, helpers)
        first = len(operands) - len(clone.results)
        for position, tile in operands.items():
            clone.operands[position] = tile
        for number, result in enumerate(clone.results):
            result.set_type(operands[first + number].type)
        shift_indices(clone, self._starts.get)
        return list(clone.results)


def made_tile(
    value: Any, region: Box, into: Any | None, helpers: ValueMap, slicer: TileSlicer
) -> Any:
    """Make the tile of an operand that an operator makes itself.

    Empty tensors and fills are made as tiles, in an allocation if there is one;
    anything else is made whole and sliced.

    Args:
        value: The operand.
        region: The box of it that is wanted.
        into: The allocation.
        helpers: What was made before.
        slicer: Makes slices.
    """
    name = value.owner.operation.name
    if name == "linalg.fill":
        scalar, init = value.owner.operation.operands
        clone_helper(scalar, helpers)
        # A fill writes all of what it is given.
        tile = _empty(init, region) if into is None else into
        fill = value.owner.operation.clone()
        fill.operands[0] = helpers[scalar]
        fill.operands[1] = tile
        fill.results[0].set_type(tile.type)
        return fill.results[0]
    if name == "tensor.empty":
        return _empty(value, region) if into is None else into
    clone_helper(value, helpers)
    if not isinstance(value.type, ir.RankedTensorType):
        return helpers[value]
    return slicer.slice(helpers[value], region)


def _empty(like: Any, region: Box) -> Any:
    element = ir.RankedTensorType(like.type).element_type
    return tensor.EmptyOp([interval.size for interval in region], element).result
