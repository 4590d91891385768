"""Owns the parts of a grid of tiles whose sizes need not divide their extents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GridLoop:
    """A loop over tiles that all have one size.

    Attributes:
        start: Where the first one begins.
        end: Where the last one ends.
        step: Their size; it divides what is between.
    """

    start: int
    end: int
    step: int


def grid_parts(
    extents: Sequence[int], steps: Sequence[int]
) -> list[tuple[GridLoop, ...]]:
    """Return the parts of a grid, each with one loop for every extent.

    Tiles of a part have one shape. The first part has those of full size; along an
    extent that its step does not divide what is left makes one more range. Parts and
    their tiles are disjoint and cover everything.

    Args:
        extents: What is split.
        steps: Size of the tiles along each; no larger than what they split.
    """
    pairs = zip(extents, steps, strict=True)
    return list(itertools.product(*(_loops(extent, step) for extent, step in pairs)))


def _loops(extent: int, step: int) -> list[GridLoop]:
    whole = extent - extent % step
    rest = [GridLoop(whole, extent, extent - whole)] if whole < extent else []
    return [GridLoop(0, whole, step), *rest]
