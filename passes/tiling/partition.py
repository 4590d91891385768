"""Owns the check that the tiles of a grid write every element of a tensor once."""

from __future__ import annotations

from magweld.passes.tiling.regions import ZERO, Interval, OperatorModel


def is_partition(
    shape: tuple[int, ...],
    region: tuple[Interval, ...],
    root: OperatorModel,
    tile: tuple[int, ...],
) -> bool:
    """Return whether the regions of all tiles are disjoint and cover a tensor.

    Each dimension has to be taken whole or to follow one loop that the grid splits,
    and each of these loops one dimension: tiles that differ in a loop that no
    dimension follows would write the same elements.

    Args:
        shape: Extents of the tensor.
        region: What one tile makes of it, over the parallel loops of `root`.
        root: The operator whose result tile makes the grid.
        tile: Sizes along the parallel loops of `root`; the last tile along each may be
            smaller.
    """
    split = {
        loop: size
        for loop, size in zip(root.parallel, tile, strict=True)
        if size < root.extents[loop]
    }
    followed: list[int] = []
    for extent, interval in zip(shape, region, strict=True):
        if interval.offset == ZERO and interval.size == extent and extent:
            continue
        loop = _followed_loop(extent, interval, root, split)
        if loop is None:
            return False
        followed.append(loop)
    return sorted(followed) == sorted(split)


def _followed_loop(
    extent: int, interval: Interval, root: OperatorModel, split: dict[int, int]
) -> int | None:
    """The loop along which the intervals of neighbouring tiles touch, if there is."""
    offset = interval.offset
    if len(offset.terms) != 1 or offset.constant:
        return None
    ((loop, step),) = offset.terms
    touches = loop in split and interval.size == step * split[loop]
    return loop if touches and extent == step * root.extents[loop] else None
