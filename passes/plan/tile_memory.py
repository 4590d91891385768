"""Owns what a plan says of memory: places of tiles, and bytes that move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from magweld.dialects.tile_graph import (
    PlaceAttr,
    Region,
    Role,
    build_release,
    place_attribute,
)
from magweld.passes.plan.tile_slices import Box, TileSlicer
from magweld.passes.tiling.external_reads import transaction_bytes
from magweld.passes.tiling.placement import (
    ALIGNMENT_BYTES,
    Placement,
    Slot,
    buffers_beside,
)
from magweld.passes.tiling.regions import Access, OperatorModel
from magweld.targets.device import Level


@dataclass(frozen=True)
class TileMemory:
    """The memory of one tile.

    Attributes:
        level: Name of the level that holds tiles.
        placement: Where what lies there.
        outermost: Where tensors are loaded from and stored to.
        further: Name of the level around it.
        cached: Whether the level keeps what is read of tensors by itself.
    """

    level: str
    placement: Placement
    outermost: Level
    cached: bool
    further: str

    def place(self, slot: Slot | None, size: int) -> PlaceAttr | None:
        """Return a slot as the place of a tile of a size, which may be less of it."""
        if slot is None:
            return None
        return place_attribute(self.level, slot.offset, size, ALIGNMENT_BYTES)

    def beside(
        self, number: int, node: OperatorModel, box: Box
    ) -> Iterator[tuple[Role, int, PlaceAttr]]:
        """Yield what an operator has beside its tiles: its role, bytes and place.

        Tiles that are smaller than others may want more than these have: that has no
        place.

        Args:
            number: Position of the operator.
            node: The operator.
            box: Its iterations.
        """
        buffers, slots = buffers_beside(node, box), self.placement.beside
        if buffers is None:
            return
        level = self.further if self.placement.apart else self.level
        in_tiles = (number, Role.WEIGHTS) in slots
        for role, size in buffers.sizes(in_tiles=in_tiles).items():
            slot = slots.get((number, role))
            if slot is not None and size <= slot.size:
                place = place_attribute(level, slot.offset, size, ALIGNMENT_BYTES)
                yield role, size, place

    def loaded(self, read: Access, region: Box, points: int, at: TileSlicer) -> Region:
        """Describe what is read of a tensor.

        Args:
            read: How.
            region: The box of the tensor.
            points: How many iterations read it.
            at: Makes positions.
        """
        smallest = self.outermost.transaction
        if read.gathered:
            return _region(at, region, read.gathered_bytes(points), smallest)
        return _region(at, region, _moved(read, region, smallest), smallest)

    def stored(self, write: Access, region: Box, at: TileSlicer) -> Region:
        """Describe what is written of a tensor."""
        smallest = self.outermost.to_write
        return _region(at, region, _moved(write, region, smallest), smallest)


def _moved(access: Access, region: Box, smallest: int) -> int:
    sizes = tuple(interval.size for interval in region)
    return transaction_bytes(sizes, access.shape, access.element_bytes, smallest)


def _region(at: TileSlicer, region: Box, moved: int, smallest: int) -> Region:
    positions, offsets = at.begin(region)
    sizes = tuple(interval.size for interval in region)
    return Region(positions, offsets, sizes, moved, math.ceil(moved / smallest))


class LiveTiles:
    """The tiles that have a place at one point of a plan."""

    def __init__(self) -> None:
        """Begin with none."""
        self._tiles: dict[Any, None] = {}

    def all(self) -> frozenset[Any]:
        """Return all of them."""
        return frozenset(self._tiles)

    def add(self, tile: Any) -> Any:
        """Take what was allocated or loaded, and return it."""
        if "place" in tile.owner.operation.attributes:
            self._tiles[tile] = None
        return tile

    def release(self, tiles: Iterable[Any]) -> None:
        """Free the places of tiles, those that have one."""
        for tile in [tile for tile in tiles if tile in self._tiles]:
            build_release(tile)
            del self._tiles[tile]

    def release_all_but(self, kept: frozenset[Any] = frozenset()) -> None:
        """Free all places but some."""
        self.release([tile for tile in self._tiles if tile not in kept])
