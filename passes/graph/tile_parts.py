"""Owns tiles that are put together: parts behind each other, and borders around one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import arith, ir, linalg, tensor
from magweld.passes.analysis.cloning import ValueMap, clone_helper
from magweld.passes.analysis.pads import Pad
from magweld.passes.linalg_builder import build_generic
from magweld.passes.tensor_slices import extract_slice


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


def bordered(
    tile: Any, into: Any, pad: Pad, sizes: Sequence[int], *, alone: bool = False
) -> Any:
    """Return a tile with a border around it.

    Args:
        tile: What is inside.
        into: The larger tile.
        pad: The border.
        sizes: Extents of the tile, with those that it lacks as they are one.
        alone: Whether nothing inside may be a zero with a sign, as the border is.
    """
    helpers = ValueMap()
    clone_helper(pad.fill, helpers)
    filled = linalg.fill(helpers[pad.fill], outs=[into])
    if alone:
        shape = ir.RankedTensorType(tile.type).shape
        tile = _unsigned_zeros(tile, extract_slice(filled, pad.low, sizes, shape))
    return _inserted(tile, filled, pad.low, sizes)


def _unsigned_zeros(tile: Any, into: Any) -> Any:
    """What adding zero makes of a tile: other numbers stay what they are."""
    kind = ir.RankedTensorType(tile.type)
    element = kind.element_type
    zero = arith.constant(element, ir.FloatAttr.get(element, 0.0))
    maps = [ir.AffineMap.get_identity(kind.rank)] * 2
    body = build_generic([tile], [into], maps, lambda v: [arith.addf(v[0], zero)])
    return body.results[0]


def _inserted(
    part: Any, whole: Any, offsets: Sequence[int], sizes: Sequence[int]
) -> Any:
    ones = [1] * len(sizes)
    return tensor.insert_slice(
        part, whole, [], [], [], list(offsets), list(sizes), ones
    )
