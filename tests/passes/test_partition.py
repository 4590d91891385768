"""Tiles that write every element of a tensor once, found by counting."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from operator_models import elementwise

from magweld.passes.tiling.partition import is_partition
from magweld.passes.tiling.regions import ZERO, Interval, LinearIndex
from magweld.passes.tiling.tile_sizes import divisors

ROOT = elementwise("root", (4, 6), [])


def writes(
    region: tuple[Interval, ...], tile: tuple[int, ...]
) -> Counter[tuple[int, ...]]:
    """Count how often each position is written by the tiles of `ROOT`."""
    found: Counter[tuple[int, ...]] = Counter()
    starts = [range(0, e, t) for e, t in zip(ROOT.extents, tile, strict=True)]
    for start in itertools.product(*starts):
        ranges = []
        for interval in region:
            terms = interval.offset.terms
            first = sum(start[i] * c for i, c in terms) + interval.offset.constant
            ranges.append(range(first, first + interval.size))
        found.update(itertools.product(*ranges))
    return found


OFFSETS = [
    ZERO,
    LinearIndex((), 1),
    LinearIndex(((0, 1),)),
    LinearIndex(((1, 1),)),
    LinearIndex(((0, 2),)),
    LinearIndex(((1, 1),), 1),
    LinearIndex(((0, 1), (1, 1))),
]


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 4), (8, 6), (4,), (1, 6), (0,)])
def test_a_partition_writes_each_element_once(shape: tuple[int, ...]) -> None:
    possible = [
        [Interval(offset, size) for offset in OFFSETS for size in range(1, extent + 1)]
        for extent in shape
    ]
    accepted = 0
    for tile in itertools.product(*map(divisors, ROOT.extents)):
        for region in itertools.product(*possible):
            if is_partition(shape, region, ROOT, tile):
                accepted += 1
                every = itertools.product(*map(range, shape))
                assert writes(region, tile) == Counter(every), (region, tile)
    assert bool(accepted) == (0 not in shape)


def test_what_follows_the_grid_is_a_partition() -> None:
    region = (
        Interval(LinearIndex(((1, 1),)), 3),
        Interval(LinearIndex(((0, 2),)), 4),
    )
    assert is_partition((6, 8), region, ROOT, (2, 3))
    assert not is_partition((6, 8), region, ROOT, (2, 6))
