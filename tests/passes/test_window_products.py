"""Tiles of convolutions as products: where their pixels lie, what they cost."""

from __future__ import annotations

import itertools
import operator
from dataclasses import replace

import pytest
from operator_models import access, chain, loops

from magweld.passes.tiling.placement import footprint_bytes
from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import propagate
from magweld.passes.tiling.regions import LinearIndex, OperatorKind, OperatorModel
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.window_products import (
    WindowProduct,
    window_product,
    window_work,
)
from magweld.targets import device

SHAPES = [
    WindowProduct(64, 64, (14, 14), (3, 3), (1, 1), (1, 1)),
    WindowProduct(32, 16, (7, 7), (3, 3), (1, 1), (1, 1)),
    WindowProduct(16, 16, (5, 4), (3, 3), (2, 2), (1, 1)),
    WindowProduct(16, 16, (5, 4), (3, 3), (2, 2), (2, 2)),
    WindowProduct(16, 32, (3, 5), (1, 4), (1, 3), (1, 2)),
    WindowProduct(48, 32, (3, 5), (5, 2), (3, 1), (1, 3)),
]


def place(tile: WindowProduct, row: int, column: int) -> tuple[int, ...]:
    """Where a pixel of the image lies in shared memory: part, row, column."""
    down, across = tile.strides
    number = (row % down) * across + column % across
    return number, row // down, column // across


@pytest.mark.parametrize("tile", SHAPES, ids=str)
def test_pixels_of_a_point_are_neighbours(tile: WindowProduct) -> None:
    assert tile.columns % 16 == 0
    across = tile.strides[1]
    for down, wide in itertools.product(*map(range, tile.window)):
        part = tile.remainders(down, wide)
        assert part in tile.parts
        row, column = (
            step * dilation // stride
            for step, dilation, stride in zip(
                (down, wide), tile.dilations, tile.strides, strict=True
            )
        )
        number = part[0] * across + part[1]
        first = (number * tile.part_rows + row) * tile.pitch + column
        for y, x in itertools.product(*map(range, tile.pixels)):
            read = (
                y * tile.strides[0] + down * tile.dilations[0],
                x * tile.strides[1] + wide * tile.dilations[1],
            )
            assert all(map(operator.lt, read, tile.reach))
            own, high, along = place(tile, *read)
            at = (own * tile.part_rows + high) * tile.pitch + along
            assert at == first + y * tile.pitch + x
        # What is computed for nothing reads no more than there is.
        end = (number + 1) * tile.part_rows * tile.pitch
        assert first + tile.columns <= end


@pytest.mark.parametrize("tile", SHAPES, ids=str)
def test_parts_hold_the_pixels_that_are_read(tile: WindowProduct) -> None:
    rows, columns = tile.reach
    for part in tile.parts:
        high, wide = tile.part_extents(*part)
        assert (high, wide) == (
            len(range(part[0], rows, tile.strides[0])),
            len(range(part[1], columns, tile.strides[1])),
        )
        assert high <= tile.part_rows
        assert wide <= tile.pitch


def windows(
    channels: int = 64,
    rows: int = 64,
    factors: str = "bf16",
    border: int = 1,
    stride: int = 1,
) -> OperatorModel:
    """Windows of 3 x 3 on 4 images of 28 x 28: (n, f, y, x, c, v, u)."""
    y, x = (LinearIndex(((loop, stride), (loop + 3, 1)), -border) for loop in (2, 3))
    edge = ((0, 0), (0, 0), (border, border), (border, border))
    n, _, _, _, c, *_ = loops(*range(7))
    wide = 28 * stride + (2 - 2 * border)
    image = access(0, (4, channels, wide, wide), (n, c, y, x), border=edge)
    reads = image, access(1, (rows, channels, 3, 3), loops(1, 4, 5, 6))
    size = 2 if factors else 4
    return OperatorModel(
        name="windows",
        kind=OperatorKind.CONVOLUTION,
        extents=(4, rows, 28, 28, channels, 3, 3),
        parallel=(0, 1, 2, 3),
        reads=tuple(replace(read, element_bytes=size) for read in reads),
        writes=(access(0, (4, rows, 28, 28), loops(0, 1, 2, 3)),),
        flops=2,
        factors=factors,
    )


def found(node: OperatorModel, tile: tuple[int, ...]) -> WindowProduct | None:
    tiles = propagate(chain(node), tile)
    return window_product(node, tiles.parts[-1].box)


def test_a_tile_of_rows_is_a_product() -> None:
    expected = WindowProduct(64, 64, (4, 28), (3, 3), (1, 1), (1, 1))
    assert found(windows(), (1, 64, 4, 28)) == expected
    strided = replace(expected, strides=(2, 2))
    assert found(windows(stride=2), (1, 64, 4, 28)) == strided


@pytest.mark.parametrize(
    ("node", "tile"),
    [
        (windows(), (1, 8, 4, 28)),  # less than the rows of an instruction
        (windows(), (2, 64, 4, 28)),  # pixels of two images
        (windows(), (1, 64, 28, 28)),  # more sums than registers
        (windows(channels=24), (1, 64, 4, 28)),  # a step and a half
        (windows(factors=""), (1, 64, 4, 28)),
    ],
)
def test_other_tiles_are_none(node: OperatorModel, tile: tuple[int, ...]) -> None:
    assert found(node, tile) is None


def test_the_time_is_that_of_instructions_with_what_is_left() -> None:
    node, one = windows(), device("h100")
    part = propagate(chain(node), (1, 64, 4, 28)).parts[-1]
    work = window_work(part, one)
    assert work is not None
    # 30 columns for 28 pixels, in whole fragments.
    columns = 128
    assert work.operations == 2 * 64 * columns * 64 * 9
    rates = {one.name: one.gflops for one in one.instructions}
    seconds = work.operations / (rates["mma.m16n8k16.bf16"] * 1e9)
    assert work.seconds == pytest.approx(seconds)
    assert window_work(part, device("v100")) is None


def test_footprints_hold_a_step_and_the_sums() -> None:
    node, one = windows(), device("h100")
    group = chain(node)
    tiles = propagate(group, (1, 64, 4, 28))
    product = window_product(node, tiles.parts[-1].box)
    assert product is not None
    bordered = 8 * 30 * 16 * 2
    step = bordered + product.image_bytes + product.weight_bytes
    taken = footprint_bytes(group, tiles, one.level("shared"), 1)
    assert max(step, product.sum_bytes) <= taken <= step + product.sum_bytes + 256


def test_what_follows_may_have_fewer_dimensions() -> None:
    node, one = windows(), device("h100")
    # The mean of all pixels of a channel.
    mean = OperatorModel(
        name="mean",
        kind=OperatorKind.REDUCTION,
        extents=(4, 64, 28, 28),
        parallel=(0, 1),
        reads=(access(0, (4, 64, 28, 28), loops(0, 1, 2, 3)),),
        writes=(access(0, (4, 64), loops(0, 1)),),
        flops=1,
    )
    assert isinstance(schedule(chain(node, mean), one), Plan)


def test_the_planner_takes_tiles_that_are_products() -> None:
    plan = schedule(chain(windows()), device("h100"))
    assert isinstance(plan, Plan)
    assert window_product(windows(), plan.tiles.parts[-1].box) is not None
