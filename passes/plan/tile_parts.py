"""Owns tiles that are put together: parts behind each other, and borders around one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import ir, linalg, tensor
from magweld.passes.ir.cloning import ValueMap, clone_helper
from magweld.passes.ir.pads import Pad


def joined(parts: Sequence[Any], into: Any, along: int) -> Any:
    """Return parts of tensors in one tile, one behind the other.

    Args:
        parts: What is joined.
        into: The tile that they fill.
        along: The dimension in which they follow each other.
    """
    first = 0
    for part in parts:
        sizes = list(ir.RankedTensorType(part.type).shape)
        offsets = [first if dim == along else 0 for dim in range(len(sizes))]
        into = _inserted(part, into, offsets, sizes)
        first += sizes[along]
    return into


def bordered(tile: Any, into: Any, pad: Pad, sizes: Sequence[int]) -> Any:
    """Return a tile with a border around it.

    Args:
        tile: What is inside.
        into: The larger tile.
        pad: The border.
        sizes: Extents of the tile, with those that it lacks as they are one.
    """
    helpers = ValueMap()
    clone_helper(pad.fill, helpers)
    filled = linalg.fill(helpers[pad.fill], outs=[into])
    return _inserted(tile, filled, pad.low, sizes)


def _inserted(
    part: Any, whole: Any, offsets: Sequence[int], sizes: Sequence[int]
) -> Any:
    ones = [1] * len(sizes)
    return tensor.insert_slice(
        part, whole, [], [], [], list(offsets), list(sizes), ones
    )
