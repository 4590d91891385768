"""What rows of images cost that do not fill their vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, device, loops, matmul
from welder_groups import CONVOLUTION, convolutions, window

from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import Tiles, propagate
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import candidate_tiles, root_sizes
from magweld.passes.tiling.vectors import ALONG_REDUCTION, vector_waste
from magweld.targets.device import Device


def sixteen_lanes() -> Device:
    return replace(device(tile_bytes=1 << 20), vector_bits=512, threads=1)


@pytest.mark.parametrize(
    ("tile", "waste"),
    [
        # Six rows of one vector each.
        ((1, 1, 6, 16), 1.0),
        # 14 takes a vector that is not full.
        ((1, 1, 6, 14), 6 * 16 / (6 * 14)),
        # One row of eight: half a vector.
        ((1, 1, 1, 8), 2.0),
    ],
)
def test_rows_of_a_window(tile: tuple[int, ...], waste: float) -> None:
    group = convolutions(window(CONVOLUTION, (1, 4, 48, 112), (), 3))
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    assert vector_waste(tiles.parts[0], sixteen_lanes()) == pytest.approx(waste)
    many = replace(sixteen_lanes(), threads=32)
    assert vector_waste(tiles.parts[0], many) == 1.0


def test_rows_without_masks() -> None:
    # 14 takes three vectors of 8 and less; six rows as one are 5 * 16 + 14: thirteen.
    group = convolutions(window(CONVOLUTION, (1, 4, 48, 112), (), 3))
    tiles = propagate(group, (1, 1, 6, 14))
    assert isinstance(tiles, Tiles)
    narrow = replace(sixteen_lanes(), vector_bits=256)
    found = vector_waste(tiles.parts[0], narrow)
    assert found == pytest.approx(13 * 8 / (6 * 14))


def test_sums_over_channels_have_no_masks() -> None:
    # Of 16 channels and 9 points nothing is written out.
    group = convolutions(window(CONVOLUTION, (1, 4, 48, 112), (16,), 3))
    tiles = propagate(group, (1, 1, 6, 14))
    assert isinstance(tiles, Tiles)
    waste = vector_waste(tiles.parts[0], sixteen_lanes())
    assert waste == pytest.approx(8 * 16 / (6 * 14))


def test_a_column_is_a_row() -> None:
    # Convolutions over one dimension: 64 steps are four vectors, 24 take two.
    group = convolutions(window(CONVOLUTION, (1, 4, 192, 1), (), 3))
    for rows, waste in ((64, 1.0), (24, 2 * 16 / 24)):
        tiles = propagate(group, (1, 1, rows, 1))
        assert isinstance(tiles, Tiles)
        found = vector_waste(tiles.parts[0], sixteen_lanes())
        assert found == pytest.approx(waste)


def test_rows_that_follow_each_other_are_one() -> None:
    single = convolutions(window(CONVOLUTION, (1, 4, 8, 24), (4,), 1))
    both = convolutions(*[window(CONVOLUTION, (1, 4, 8, 24), (4,), 1)] * 2)
    for tile, wastes in (((1, 4, 2, 24), (1, 1)), ((1, 4, 2, 8), (2, 1))):
        whole, inner = propagate(single, tile), propagate(both, tile)
        assert isinstance(whole, Tiles)
        assert isinstance(inner, Tiles)
        assert vector_waste(whole.parts[0], sixteen_lanes()) == wastes[0]
        # What another operator of the group has made lies in a tile of its own.
        assert vector_waste(inner.parts[1], sixteen_lanes()) == wastes[1]


@pytest.mark.parametrize(
    ("tile", "waste"),
    [
        # 49 pixels are three vectors and a column of dot products: the image is copied
        # for every tile, and vectors of 49 elements are of two lines each.
        ((1, 16, 7, 7), 4 * 16 / 49 + 0.45 * 16 / 16),
        ((1, 64, 7, 7), 4 * 16 / 49 + 0.45 * 16 / 64),
        # 42 are vectors of 16, 8 and 2, which read it where it is.
        ((1, 16, 6, 7), 4 * 16 / 42),
    ],
)
def test_a_panel_of_dot_products_is_copied_for_every_tile(
    tile: tuple[int, ...], waste: float
) -> None:
    group = convolutions(window(CONVOLUTION, (1, 64, 7, 7), (64,), 1))
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    assert vector_waste(tiles.parts[0], sixteen_lanes()) == pytest.approx(waste)


@pytest.mark.parametrize(
    ("channels", "stride", "copied"),
    [
        # Vectors of every second pixel are those of a copy.
        (16, 2, 0.25 * 16),
        # Pixels beside each other are read in place, and windows of few points with
        # what is between them.
        (16, 1, 0.0),
        (7, 2, 0.0),
    ],
)
def test_images_of_which_every_second_pixel_is_read_are_copied_for_every_tile(
    channels: int, stride: int, copied: float
) -> None:
    group = convolutions(
        window(CONVOLUTION, (1, 64, 56, 64), (channels,), 3, stride=stride)
    )
    for rows in (16, 64):
        tiles = propagate(group, (1, rows, 4, 64))
        assert isinstance(tiles, Tiles)
        waste = vector_waste(tiles.parts[0], sixteen_lanes())
        assert waste == pytest.approx(1 + copied / rows)


def test_a_plan_may_have_sizes_that_candidates_were_thinned_by() -> None:
    group = convolutions(
        window(CONVOLUTION, (4, 144, 56, 56), (24,), 1),
        window(CONVOLUTION, (4, 144, 56, 56), (), 3),
        window(CONVOLUTION, (4, 24, 56, 56), (144,), 1),
    )
    plan = schedule(group, sixteen_lanes())
    assert isinstance(plan, Plan)
    assert plan.tile not in set(candidate_tiles(root_sizes(group.root, ragged=False)))


@pytest.mark.parametrize(
    ("tile", "waste"),
    [
        # A panel of which 64 rows read each element.
        ((64, 64), 1 + 0.15 * 16 / 64),
        ((128, 64), 1 + 0.15 * 16 / 128),
        # 24 columns are a vector and half of one.
        ((64, 24), 2 * 16 / 24 + 0.15 * 16 / 64),
    ],
)
def test_few_rows_do_not_pay_for_a_panel(tile: tuple[int, int], waste: float) -> None:
    group = chain(matmul("mm", 384, 192, 256))
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    assert vector_waste(tiles.parts[0], sixteen_lanes()) == pytest.approx(waste)
    many = replace(sixteen_lanes(), threads=32)
    assert vector_waste(tiles.parts[0], many) == 1.0


def test_rows_of_both_operands_need_no_panel() -> None:
    product = matmul("mm", 384, 192, 256)
    turned = access(1, (192, 256), loops(1, 2))
    group = chain(replace(product, reads=(product.reads[0], turned)))
    for tile, waste in (((64, 64), 1 + 0.5 * 16 / 64), ((2, 64), ALONG_REDUCTION)):
        tiles = propagate(group, tile)
        assert isinstance(tiles, Tiles)
        assert vector_waste(tiles.parts[0], sixteen_lanes()) == pytest.approx(waste)
