"""Footprint, traffic and predicted time, with numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from operator_models import (
    access,
    chain,
    convolution,
    device,
    elementwise,
    loops,
    matmul,
    row_reduction,
)
from welder_groups import convolutions, window

from magweld.passes.tiling.cost import Cost, cost
from magweld.passes.tiling.external_reads import RESIDENT_FRACTION, transaction_bytes
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.placement import footprint_bytes
from magweld.passes.tiling.propagation import Tiles, propagate
from magweld.passes.tiling.regions import (
    ZERO,
    Interval,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.steps import (
    BORDERED_BYTES,
    LEAST_READS,
    REDUCTION_BLOCK,
    block_count,
    block_of,
    reduction_block,
)
from magweld.targets.device import Device, Level, LevelKind

# q k^T of the Welder paper (section 2): 98304 rows, 64 long, 128 columns, in f32.
ATTENTION = (98304, 128, 64)


def price(group: Group, tile: tuple[int, ...], target: Device, step: int = 1) -> Cost:
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    return cost(group, tiles, target, target.levels[1], step)


@pytest.mark.parametrize(
    ("tile", "bytes_of_tile", "tiles"),
    [((4, 128), 35840, 24576), ((16, 128), 45056, 6144)],
)
def test_traffic_is_that_of_the_welder_paper(
    tile: tuple[int, ...], bytes_of_tile: int, tiles: int
) -> None:
    # One tile fits, and nothing that it has is still there for the next.
    target = device(units=1, tile_bytes=bytes_of_tile)
    found = price(chain(matmul("qk", *ATTENTION)), tile, target)
    assert found.traffic == bytes_of_tile * tiles
    assert found.tile_traffic == found.traffic


def test_connected_operators_move_no_intermediate() -> None:
    product, maximum = matmul("qk", 64, 32, 16), row_reduction("max", 64, 32)
    found = price(chain(product, maximum), (8,), device())
    read_by_a_tile = (8 * 16 + 16 * 32) * 4
    assert found.tile_traffic == 8 * read_by_a_tile + 64 * 4
    assert found.traffic == (64 * 16 + 16 * 32 + 64) * 4


def test_a_slice_moves_what_it_takes() -> None:
    taken = replace(access(0, (8, 64), (None, None)), part=(2, 64))
    made = access(0, (2, 64), (None, None))
    node = OperatorModel(
        "slice", OperatorKind.MOVE, (2, 64), (0, 1), (taken,), (made,), 0
    )
    found = price(chain(node), (2, 64), device())
    assert found.traffic == found.tile_traffic == 2 * (2 * 64 * 4)


def test_a_tensor_that_two_nodes_read_by_one_region_counts_once() -> None:
    read = access(0, (8, 8), loops(0, 1))
    first = elementwise("first", (8, 8), [read])
    second = elementwise("second", (8, 8), [replace(read, argument=1), read])
    apart = Group(
        (first, second), ((Source(None, 0),), (Source(0, 1), Source(None, 2)))
    )
    shared = Group(
        (first, second), ((Source(None, 0),), (Source(0, 1), Source(None, 0)))
    )
    target = device()
    difference = (
        price(apart, (4, 8), target).traffic - price(shared, (4, 8), target).traffic
    )
    assert difference == 8 * 8 * 4


def test_a_cache_outside_of_the_tiles_serves_what_it_can_hold() -> None:
    product = chain(matmul("qk", 256, 32, 16))
    weight, tile = 16 * 32 * 4, (8 * 16 + 16 * 32 + 8 * 32) * 4
    outer, inner, register = device(units=1, tile_bytes=tile).levels
    for room, reads in ((tile, 1), (tile - 1, 32)):
        capacity = math.ceil(room / RESIDENT_FRACTION)
        l2 = Level("l2", capacity, 200.0, 64, 1, LevelKind.CACHE)
        target = replace(device(units=1), levels=(outer, l2, inner, register))
        tiles = propagate(product, (8, 32))
        assert isinstance(tiles, Tiles)
        found = cost(product, tiles, target, inner, 1)
        assert found.traffic == (256 * 16 + 256 * 32) * 4 + reads * weight
        assert found.tile_traffic == (256 * 16 + 256 * 32) * 4 + 32 * weight


def reads_from_dram(group: Group, tile: tuple[int, ...], room: int) -> int:
    """Return what is read with tiles in a cache that has room for some bytes."""
    capacity = math.ceil(room / RESIDENT_FRACTION)
    found = price(group, tile, device(units=1, tile_bytes=capacity))
    return found.traffic - sum(write.total_bytes for write in group.stored)


def test_rows_stay_while_their_columns_pass_and_columns_if_all_of_them_fit() -> None:
    product = chain(matmul("product", 64, 256, 32))
    rows, columns = 64 * 32 * 4, 32 * 256 * 4
    one_tile = (8 * 32 + 32 * 16 + 8 * 16) * 4
    all_columns = (8 * 32 + 32 * 256 + 8 * 256) * 4
    for room, expected in (
        (all_columns, rows + columns),
        (all_columns - 1, rows + 8 * columns),
        (one_tile, rows + 8 * columns),
        (one_tile - 1, 16 * rows + 8 * columns),
    ):
        assert reads_from_dram(product, (8, 16), room) == expected


def test_what_windows_have_in_common_comes_once_if_neighbours_find_it() -> None:
    window = chain(convolution("window", 1024, 33, 1, 1))
    # 62 results of 94 elements and 33 weights.
    read = transaction_bytes((94,), (1024,), 4, 64)
    tile = read + 33 * 4 + transaction_bytes((62,), (992,), 4, 64)
    met, apart = (reads_from_dram(window, (62,), room) for room in (tile, tile - 1))
    assert met == (1024 + 33) * 4
    assert apart == 16 * (read + 33 * 4)


def test_two_windows_of_one_tensor_come_as_one() -> None:
    small, large = (
        access(0, (64, 64), loops(0, 1)),
        access(1, (64, 64), (LinearIndex(((0, 1),)), LinearIndex(((2, 1),)))),
    )
    node = replace(
        elementwise("both", (64, 64), [small, large]),
        extents=(64, 64, 64),
        kind=OperatorKind.REDUCTION,
    )
    group = Group((node,), ((Source(None, 0), Source(None, 0)),))
    assert reads_from_dram(group, (8, 16), 1 << 16) == 64 * 64 * 4


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ((4, 32), 4 * 32 * 4),  # whole rows: one run
        ((4, 16), 4 * 64),  # runs of one transaction
        ((4, 4), 4 * 64),  # runs of a quarter: the rest of each is lost
        ((4, 1), 4 * 64),
        ((1, 8), 64),
        ((4, 18), 4 * (18 * 4 + 60)),  # from any place in a line: up to 60 bytes more
    ],
)
def test_short_runs_cost_whole_transactions(
    region: tuple[int, ...], expected: int
) -> None:
    assert transaction_bytes(region, (64, 32), 4, 64) == expected


def test_a_cache_holds_operands_and_results_of_a_tile() -> None:
    product, target = matmul("qk", 64, 32, 16), device()
    tiles = propagate(chain(product), (8, 16))
    assert isinstance(tiles, Tiles)
    expected = (8 * 16 + 16 * 16 + 8 * 16) * 4
    found = footprint_bytes(chain(product), tiles, target.levels[1], step=4)
    assert found == expected


def test_a_cache_holds_one_block_of_a_long_reduction() -> None:
    target = device()
    for depth, held in ((REDUCTION_BLOCK * 2, REDUCTION_BLOCK), (300, 300)):
        product = matmul("qk", 64, 32, depth)
        tiles = propagate(chain(product), (8, 16))
        assert isinstance(tiles, Tiles)
        found = footprint_bytes(chain(product), tiles, target.levels[1], step=4)
        assert found == (8 * held + 16 * held + 8 * 16) * 4


@pytest.mark.parametrize(
    ("extent", "block"), [(383, 383), (384, 192), (512, 176), (600, 160), (768, 192)]
)
def test_blocks_of_a_long_reduction_are_about_equal(extent: int, block: int) -> None:
    assert block_of(extent, 192) == block


def test_a_block_is_never_longer_than_asked_for() -> None:
    assert all(block_of(extent, 8) <= 8 for extent in range(16, 200))


@pytest.mark.parametrize("window", [1, 3])
def test_channels_of_a_convolution_are_blocks_like_any_reduction(window: int) -> None:
    product = matmul("conv", 64, 32, REDUCTION_BLOCK * 2)
    extents = (*product.extents, window)
    conv = replace(product, kind=OperatorKind.CONVOLUTION, extents=extents)
    assert block_count(conv) == 2
    assert block_count(replace(conv, winograd=2)) == 1


def test_a_loop_that_shares_an_index_is_not_walked_in_blocks() -> None:
    taps = REDUCTION_BLOCK * 2
    assert block_count(convolution("window", 2 * taps, taps, stride=1, dilation=1)) == 1


def test_sums_wait_between_two_blocks() -> None:
    # What is moved inside of the tile level beside operands and results.
    for blocks in (2, 3):
        product = chain(matmul("qk", 64, 32, REDUCTION_BLOCK * blocks))
        found = price(product, (8, 16), device())
        inner = next(share for share in found.shares if share.name == "l1")
        assert inner.amount - found.tile_traffic == 2 * (blocks - 1) * 64 * 32 * 4


def test_explicit_memory_holds_one_step_of_the_operands() -> None:
    product, target = matmul("qk", 64, 32, 16), device(kind=LevelKind.EXPLICIT)
    tiles = propagate(chain(product), (8, 16))
    assert isinstance(tiles, Tiles)
    found = footprint_bytes(chain(product), tiles, target.levels[1], step=4)
    assert found == (8 * 4 + 4 * 16) * 4


@pytest.mark.parametrize(
    ("sizes", "channels", "image"),
    [
        ((1, 4, 8, 8), (), 4 * 10 * 10 * 4),  # all channels of a tile at once
        ((1, 256, 8, 8), (), 256 * 10 * 10 * 4),  # each has a result of its own
        ((1, 4, 8, 8), (8,), 8 * 10 * 10 * 4),
        ((1, 4, 8, 8), (64,), BORDERED_BYTES),  # summed in several steps
        ((1, 4, 126, 126), (64,), 128 * 128 * 4),  # one channel has more
    ],
)
def test_explicit_memory_holds_an_image_with_its_border(
    sizes: tuple[int, ...], channels: tuple[int, ...], image: int
) -> None:
    group = convolutions(window(OperatorKind.CONVOLUTION, sizes, channels, 3))
    tiles = propagate(group, sizes)
    assert isinstance(tiles, Tiles)
    level = device(kind=LevelKind.EXPLICIT).levels[1]
    weights = sizes[1] * 3 * 4  # of one row of taps
    found = footprint_bytes(group, tiles, level, step=4)
    assert found == image + -(-weights // 64) * 64


def test_reuse_tiles_live_from_their_producer_to_their_last_reader() -> None:
    level = device(kind=LevelKind.EXPLICIT).levels[1]
    product, maximum = matmul("qk", 64, 32, 16), row_reduction("max", 64, 32)
    tiles = propagate(chain(product, maximum), (8,))
    assert isinstance(tiles, Tiles)
    operands, reuse_tile = (8 * 4 + 4 * 32) * 4, 8 * 32 * 4
    # The operands are staged before the reuse tile is there, and given back after.
    found = footprint_bytes(chain(product, maximum), tiles, level, step=4)
    assert found == operands + reuse_tile


def test_elementwise_producers_melt_into_their_only_reader() -> None:
    group = chain(
        elementwise("exp", (64, 32), [access(0, (64, 32), loops(0, 1))]),
        row_reduction("sum", 64, 32),
    )
    assert group.stays_in_registers(0)
    level = device(kind=LevelKind.EXPLICIT).levels[1]
    tiles = propagate(group, (8,))
    assert isinstance(tiles, Tiles)
    assert footprint_bytes(group, tiles, level, step=1) == 0


def test_the_slowest_level_sets_the_time() -> None:
    node = chain(elementwise("exp", (1 << 20,), [access(0, (1 << 20,), loops(0))]))
    fast = price(node, (1 << 14,), device())
    slow_memory = replace(
        device(),
        levels=(replace(device().levels[0], bandwidth=12.5), *device().levels[1:]),
    )
    slow = price(node, (1 << 14,), slow_memory)
    moved = 2 * (1 << 20) * 4
    assert fast.traffic == slow.traffic == moved
    assert slow.seconds - fast.seconds == pytest.approx(moved / 25e9)


def test_idle_units_in_the_last_wave_cost_time() -> None:
    node = chain(
        elementwise("exp", (1 << 20,), [access(0, (1 << 20,), loops(0))], 1000)
    )
    full, half = (price(node, (1 << s,), device(units=4)) for s in (18, 19))
    assert half.seconds > 1.9 * full.seconds


def test_writes_take_their_own_time() -> None:
    node = chain(elementwise("exp", (1 << 20,), [access(0, (1 << 20,), loops(0))]))
    outermost, *inner = device().levels
    slow = replace(outermost, write_bandwidth=outermost.bandwidth / 4)
    same, slower = (
        price(node, (1 << 14,), replace(device(), levels=(level, *inner)))
        for level in (outermost, slow)
    )
    assert same.traffic == slower.traffic
    seconds = (1 << 22) / (outermost.bandwidth * 1e9)
    assert slower.seconds - same.seconds == pytest.approx(3 * seconds)


@pytest.mark.parametrize(
    ("kind", "written"),
    [(LevelKind.CACHE, 64 * 32 * 4), (LevelKind.EXPLICIT, 64 * 32 * 8)],
)
def test_only_caches_merge_short_writes(kind: LevelKind, written: int) -> None:
    # Tiles of one column: four bytes of each row at a time.
    target = device(kind=kind)
    outermost = replace(target.levels[0], transaction=1, write_transaction=8)
    target = replace(target, levels=(outermost, *target.levels[1:]))
    node = chain(elementwise("exp", (64, 32), [access(0, (64, 32), loops(0, 1))]))
    found = price(node, (64, 1), target)
    assert found.traffic == 64 * 32 * 4 + written


def test_the_memory_of_a_card_is_filled_from_the_host_once() -> None:
    product = chain(matmul("qk", 256, 32, 16))
    card = Level("card", 1 << 20, 400.0, 64, 1, LevelKind.EXPLICIT)
    host, *inner = device(units=1).levels
    target = replace(device(units=1), levels=(host, card, *inner))
    tiles = propagate(product, (8, 32))
    assert isinstance(tiles, Tiles)
    found = cost(product, tiles, target, target.level("l1"), 1)
    assert found.traffic == (256 * 16 + 256 * 32 + 16 * 32) * 4
    assert found.tile_traffic == (256 * 16 + 256 * 32 + 32 * 16 * 32) * 4


def test_blocks_of_a_tile_are_for_long_reductions_that_are_read_often() -> None:
    product = matmul("product", 64, 64, REDUCTION_BLOCK * 4)
    loops = [Interval(ZERO, extent) for extent in product.extents]

    def block(**sizes: int) -> int | None:
        of_loop = {product.parallel[0]: "rows", product.reduction[0]: "depth"}
        tile = [
            i._replace(size=sizes.get(of_loop.get(n, ""), i.size))
            for n, i in enumerate(loops)
        ]
        return reduction_block(product, tile)

    assert block() == REDUCTION_BLOCK
    assert block(rows=LEAST_READS) == REDUCTION_BLOCK
    assert block(rows=LEAST_READS - 1) is None
    # A part of the reduction, as in a stream, is what has blocks then.
    assert block(depth=REDUCTION_BLOCK * 2 - 1) is None
    assert block(depth=400) == block_of(400) == 144
