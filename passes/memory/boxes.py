"""Owns boxes: which part of a tensor, as one interval of positions a dimension."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""First position and the one behind the last."""
Box = tuple[Span, ...]


def whole(shape: Iterable[int]) -> Box:
    """Return the box that is all of a tensor."""
    return tuple((0, extent) for extent in shape)


def sizes(box: Box) -> tuple[int, ...]:
    """Return the extents of a box."""
    return tuple(high - low for low, high in box)


def offsets(box: Box) -> tuple[int, ...]:
    """Return where a box begins."""
    return tuple(low for low, _ in box)


def volume(box: Box) -> int:
    """Return how many elements a box has."""
    return math.prod(sizes(box))


def hull(first: Box, second: Box) -> Box:
    """Return the least box around two."""
    return tuple(
        (min(a, c), max(b, d)) for (a, b), (c, d) in zip(first, second, strict=True)
    )


def relative(box: Box, origin: Box) -> Box:
    """Return where a box lies inside another one that holds it."""
    return tuple(
        (low - start, high - start)
        for (low, high), (start, _) in zip(box, origin, strict=True)
    )


def is_empty(box: Box) -> bool:
    """Return whether a box has no elements."""
    return any(high <= low for low, high in box)


def grid(extents: Sequence[int], tile: Sequence[int]) -> list[Box]:
    """Return the tiles of a tensor row by row; the last ones may be smaller."""
    boxes: list[Box] = [()]
    for extent, size in zip(extents, tile, strict=True):
        spans = [(at, min(at + size, extent)) for at in range(0, extent, size)]
        boxes = [(*box, span) for box in boxes for span in spans]
    return boxes
