"""Owns what a plan of a group is: a tile, where it lies, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.tiling.cost import Cost
from magweld.passes.tiling.propagation import Tiles


@dataclass(frozen=True)
class Plan:
    """A tile for a group.

    Attributes:
        level: Name of the level that holds the reuse tiles.
        tile: Result tile of the root.
        tiles: What every node computes for it.
        step: Reduction step of staged operands.
        cost: Predicted cost.
    """

    level: str
    tile: tuple[int, ...]
    tiles: Tiles
    step: int
    cost: Cost
