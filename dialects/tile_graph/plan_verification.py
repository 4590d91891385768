"""Owns the verifier rules that the ops of an execution plan share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph.attributes import PlaceAttr
from magweld.dialects.tile_graph.verification import FOR_TILES


def plan_around(op: Any) -> ir.Operation | None:
    """Return the `tile_graph.for_tiles` around an operation, None if there is none."""
    parent = op.operation.parent
    while parent is not None and parent.operation.name != FOR_TILES:
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def inside_violations(op: Any) -> Iterator[str]:
    """Yield a text unless an operation stands in a plan."""
    if plan_around(op) is None:
        yield f"expects to stand in '{FOR_TILES}'"


def place_violations(op: Any, size: int, *, exact: bool = True) -> Iterator[str]:
    """Yield what is wrong with the optional place of a tile.

    Args:
        op: What makes the tile.
        size: Bytes of the tile.
        exact: Whether the place has to take as many; no more otherwise.
    """
    attributes = op.operation.attributes
    if "place" not in attributes:
        return
    place = attributes["place"]
    if not isinstance(place, PlaceAttr):
        yield f"expected attribute 'place' to be a #tile_graph.place, got {place}"
        return
    if place.alignment < 1 or place.offset < 0 or place.offset % place.alignment:
        yield f"expected an offset that is a multiple of its alignment, got {place}"
    if place.bytes > size or (exact and place.bytes < size):
        yield f"expected a place of {size} bytes, got {place}"


def region_violations_of(
    op: Any, tile: Any, tensor: Any, positions: int
) -> Iterator[str]:
    """Yield what is wrong with the region of a tensor that a tile is.

    Args:
        op: The load or store, with `offsets` and `sizes`.
        tile: Type of the tile.
        tensor: Type of the tensor.
        positions: How many positions the region depends on.
    """
    map_ = op.offsets.value
    if map_.n_dims != positions or map_.n_symbols or len(map_.results) != tensor.rank:
        yield (
            f"expected offsets from {positions} positions along {tensor.rank} "
            f"dimensions, got {map_}"
        )
    sizes = [size.value for size in op.sizes]
    pairs = list(zip(sizes, tensor.shape, strict=False))
    if len(sizes) != tensor.rank or any(not 0 <= n <= extent for n, extent in pairs):
        yield f"expected sizes of a part of {tensor}, got {sizes}"
    longer = [size for size in sizes if size != 1]
    if longer != [n for n in tile.shape if n != 1] or tile.rank > len(sizes):
        yield f"expected a tile of sizes {sizes}, got {tile}"
    if tile.element_type != tensor.element_type:
        yield f"expected elements of type {tensor.element_type}, got {tile}"
