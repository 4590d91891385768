"""What begins again and again on a core: nests of tiles, and rows of far images."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import device
from welder_groups import CONVOLUTION, conv_relu_pool, convolutions, window

from magweld.passes.tiling.core_starts import (
    NEST_SECONDS,
    ROW_SECONDS,
    TILE_SECONDS,
    start_seconds,
)
from magweld.passes.tiling.propagation import Tiles, propagate


@pytest.mark.parametrize(
    ("tile", "rows"),
    [
        # Eight channels of ten rows, pieces of 18 of 64 columns.
        ((1, 8, 8, 16), 8 * 10),
        # Whole rows follow each other: each channel is one piece.
        ((1, 8, 8, 64), 8),
        # All channels are whole: one piece.
        ((1, 8, 64, 64), 1),
    ],
)
def test_rows_of_a_far_image(tile: tuple[int, ...], rows: int) -> None:
    group = convolutions(window(CONVOLUTION, (1, 8, 64, 64), (), 3))
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    found = start_seconds(group, tiles, device(tile_bytes=65536))
    assert found == pytest.approx(TILE_SECONDS + rows * ROW_SECONDS)
    # A cache of the core has the image, or threads wait for rows side by side.
    near = start_seconds(group, tiles, device(tile_bytes=1 << 20))
    assert near == pytest.approx(TILE_SECONDS)
    shared = replace(device(tile_bytes=65536), threads=32)
    assert start_seconds(group, tiles, shared) == pytest.approx(TILE_SECONDS)


def test_each_nest_begins() -> None:
    group = conv_relu_pool()
    tiles = propagate(group, group.root.whole_tile)
    assert isinstance(tiles, Tiles)
    roots = len(group.nests().members)
    assert 1 < roots <= len(group.nodes)
    found = start_seconds(group, tiles, device(tile_bytes=1 << 30))
    assert found == pytest.approx(TILE_SECONDS + (roots - 1) * NEST_SECONDS)
