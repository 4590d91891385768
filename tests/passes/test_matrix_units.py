"""Prices of matrix instructions: which tiles have them, how long they take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, elementwise, loops

from magweld.passes.tiling.copy_stages import (
    CopyStages,
    Staging,
    copy_stages,
    placed_stages,
    staging,
)
from magweld.passes.tiling.cost import COPY_SECONDS, cost, with_copies
from magweld.passes.tiling.matrix_units import matrix_work, warpgroups_for
from magweld.passes.tiling.placement import footprint_bytes
from magweld.passes.tiling.policy import schedule, staged_step
from magweld.passes.tiling.propagation import propagate
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.thread_shares import accessed_bytes
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets import device
from magweld.targets.device import ARITHMETIC

SIZE = 1024


def product(
    k: int = SIZE, factors: str = "bf16", batch: int = 1, rows: int = SIZE
) -> OperatorModel:
    """A product of halves, or of what else there is, summed up in f32."""
    size = 2 if factors else 4
    reads = (
        access(0, (batch, rows, k), loops(0, 1, 3)),
        access(1, (batch, k, SIZE), loops(0, 3, 2)),
    )
    return OperatorModel(
        name="product",
        kind=OperatorKind.CONTRACTION,
        extents=(batch, rows, SIZE, k),
        parallel=(0, 1, 2),
        reads=tuple(replace(read, element_bytes=size) for read in reads),
        writes=(access(0, (batch, rows, SIZE), loops(0, 1, 2)),),
        flops=4,
        factors=factors,
    )


def work(node: OperatorModel, tile: tuple[int, ...], name: str = "h100"):
    tiles = propagate(chain(node), tile)
    return matrix_work(tiles.parts[-1], device(name))


def rate_of(name: str, instruction: str) -> float:
    rates = {one.name: one.gflops * 1e9 for one in device(name).instructions}
    return rates[instruction]


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("a100", "mma.m16n8k16.bf16"),
        ("h100", "mma.m16n8k16.bf16"),
        ("mi300x", "v_mfma_f32_16x16x16_bf16"),
    ],
)
def test_a_tile_takes_the_time_of_its_instructions(name: str, instruction: str) -> None:
    found = work(product(), (1, 64, 64), name)
    operations = 2 * 64 * 64 * SIZE
    assert found.operations == operations
    assert found.seconds == pytest.approx(operations / rate_of(name, instruction))


def test_each_subgroup_loads_its_rows_and_columns() -> None:
    # Eight warps: two along the rows and four along the columns.
    found = work(product(), (1, 128, 128))
    assert found.loaded == (4 * 128 + 2 * 128) * SIZE * 2


@pytest.mark.parametrize(
    ("node", "tile"),
    [
        (product(), (1, 8, 128)),  # less than the rows of an instruction
        (product(), (1, 128, 4)),
        (product(k=24), (1, 128, 128)),  # a step and a half
        (product(), (1, 256, 128)),  # more sums than registers
        (product(batch=4), (2, 64, 64)),  # two matrices
        (product(factors=""), (1, 128, 128)),
        (product(factors="f8E5M2"), (1, 128, 128)),
    ],
)
def test_other_tiles_have_none(node: OperatorModel, tile: tuple[int, ...]) -> None:
    assert work(node, tile) is None


def pixels() -> OperatorModel:
    """A convolution of single points: (n, f, y, x, c)."""
    reads = (
        access(0, (4, 64, 28, 28), loops(0, 4, 2, 3)),
        access(1, (64, 64), loops(1, 4)),
    )
    return OperatorModel(
        name="pixels",
        kind=OperatorKind.CONTRACTION,
        extents=(4, 64, 28, 28, 64),
        parallel=(0, 1, 2, 3),
        reads=tuple(replace(read, element_bytes=2) for read in reads),
        writes=(access(0, (4, 64, 28, 28), loops(0, 1, 2, 3)),),
        flops=4,
        factors="bf16",
    )


def test_whole_rows_of_pixels_are_columns_of_a_matrix() -> None:
    found = work(pixels(), (1, 64, 4, 28))
    assert found.operations == 2 * 64 * 4 * 28 * 64
    # Four warps: two along the rows and two along 14 fragments of pixels. Eight take
    # turns on the matrix units, and load more.
    assert found.loaded == (2 * 64 + 2 * 4 * 28) * 64 * 2


@pytest.mark.parametrize(
    "tile",
    [
        (1, 64, 28, 4),  # parts of rows
        (1, 64, 1, 28),  # three fragments and a half
        (2, 64, 4, 28),  # pixels of two images
    ],
)
def test_other_pixels_are_none(tile: tuple[int, ...]) -> None:
    assert work(pixels(), tile) is None


def test_a_device_without_such_instructions_has_none() -> None:
    assert work(product(), (1, 128, 128), "v100") is None


def test_costs_have_the_time_of_instructions_and_the_bytes_that_they_load() -> None:
    node, one = product(), device("h100")
    group, tile = chain(node), (1, 128, 128)
    tiles = propagate(group, tile)
    level = one.level("shared")
    found = cost(group, tiles, one, level, 32)
    shares = {share.name: share for share in found.shares}
    arithmetic = shares[ARITHMETIC]
    assert arithmetic.amount == 2 * SIZE**3
    least = arithmetic.amount / rate_of("h100", "mma.m16n8k16.bf16")
    assert least <= arithmetic.seconds <= 3 * least  # 64 tiles for 132 units
    other = chain(replace(node, factors=""))
    plain = cost(other, propagate(other, tile), one, level, 32)
    before = {share.name: share for share in plain.shares}
    loaded = work(node, tile).loaded * tiles.grid
    parts = propagate(other, tile).parts
    by_threads = accessed_bytes(parts[-1], one) * tiles.grid
    assert shares["shared"].amount == before["shared"].amount - by_threads + loaded


def test_the_planner_takes_tiles_of_whole_fragments() -> None:
    found = schedule(chain(product()), device("h100"))
    assert isinstance(found, Plan)
    assert matrix_work(found.tiles.parts[-1], device("h100")) is not None


@pytest.mark.parametrize(
    ("k", "factors", "step"), [(48, "f16", 16), (48, "", 24), (20, "f16", 20)]
)
def test_steps_are_whole_where_they_can_be(k: int, factors: str, step: int) -> None:
    assert staged_step(chain(product(k=k, factors=factors))) == step


def test_copies_ahead_hide_what_they_wait_for() -> None:
    node, one = product(k=4096), device("h100")
    group, tile = chain(node), (1, 128, 128)
    tiles = propagate(group, tile)
    level = one.level("shared")
    price = cost(group, tiles, one, level, 32)
    steps = 4096 // 32
    times = [
        with_copies(price, tiles, level, steps, stages).seconds
        for stages in (None, *(CopyStages(count, 65536) for count in (2, 3, 4)))
    ]
    # Without copies ahead each step waits; the more are held, the more is hidden.
    assert times[0] > price.seconds
    assert times == sorted(times, reverse=True)
    slowest = max(share.seconds for share in price.shares)
    assert times[-1] > slowest


def test_a_unit_waits_for_copies_that_are_longer_than_a_step() -> None:
    node, one = product(k=4096), device("h100")
    group, tile = chain(node), (1, 16, 16)
    tiles = propagate(group, tile)
    level = one.level("shared")
    price = cost(group, tiles, one, level, 32)
    alone = CopyStages(2, level.capacity)
    rounds = -(-tiles.grid // one.units) * 128
    waited = with_copies(price, tiles, level, 128, alone).seconds
    assert waited >= rounds * COPY_SECONDS
    # Eight tiles of 256 threads wait together.
    beside = with_copies(price, tiles, level, 128, CopyStages(2, 1024)).seconds
    assert beside < waited


def test_stages_are_those_that_have_room() -> None:
    node, one = product(), device("h100")
    group = chain(node)
    tiles = propagate(group, (1, 128, 128))
    level = one.level("shared")
    most = copy_stages(group, tiles, level, Staging(32))
    assert most is not None
    assert most.count == 4
    assert most.footprint == footprint_bytes(group, tiles, level, 32, 4)
    narrow = replace(level, capacity=3 * most.footprint // 4)
    fewer = copy_stages(group, tiles, narrow, Staging(32))
    assert fewer is not None
    assert fewer.count == 3
    assert copy_stages(group, tiles, replace(level, capacity=1024), Staging(32)) is None


@pytest.mark.parametrize(("name", "factors"), [("h100", ""), ("mi300x", "bf16")])
def test_products_that_are_not_copied_ahead_cost_what_they_did(
    name: str, factors: str
) -> None:
    node, one = product(factors=factors), device(name)
    found = schedule(chain(node), one)
    assert isinstance(found, Plan)
    again = cost(chain(node), found.tiles, one, one.level(found.level), found.step)
    assert found.cost.seconds == again.seconds


def matrices(k: int = SIZE, is_transposed: bool = False) -> OperatorModel:
    """A product of two matrices; the second one may have steps side by side."""
    second = (SIZE, k) if is_transposed else (k, SIZE)
    reads = (
        access(0, (SIZE, k), loops(0, 2)),
        access(1, second, loops(1, 2) if is_transposed else loops(2, 1)),
    )
    return replace(
        product(),
        extents=(SIZE, SIZE, k),
        parallel=(0, 1),
        reads=tuple(replace(read, element_bytes=2) for read in reads),
        writes=(access(0, (SIZE, SIZE), loops(0, 1)),),
    )


@pytest.mark.parametrize(
    ("node", "tile", "name", "shared"),
    [
        (matrices(), (128, 128), "h100", (8, 1)),
        (matrices(), (256, 64), "h200", (8, 1)),
        (matrices(), (64, 64), "h100", (4, 1)),
        # Rows of 64 halves have columns side by side, or steps.
        (matrices(), (128, 96), "h100", None),
        (matrices(is_transposed=True), (128, 96), "h100", (8, 1)),
        # One step, steps that are no rows, rows that are no warpgroups, no registers.
        (matrices(k=64), (128, 128), "h100", None),
        (matrices(k=96), (128, 128), "h100", None),
        (matrices(), (32, 128), "h100", None),
        (matrices(), (128, 256), "h100", (8, 1)),
        (matrices(), (256, 256), "h100", None),
        # Other instructions, and members of a batch.
        (matrices(), (128, 128), "a100", None),
        (matrices(), (128, 128), "mi300x", None),
        (product(), (1, 128, 128), "h100", None),
    ],
)
def test_warpgroups_share_what_has_whole_rows(
    node: OperatorModel, tile: tuple[int, ...], name: str, shared: object
) -> None:
    (part,) = propagate(chain(node), tile).parts
    assert warpgroups_for(part, device(name)) == shared


def test_warpgroups_take_the_time_of_their_instructions() -> None:
    found = work(matrices(), (128, 128))
    operations = 2 * 128 * 128 * SIZE
    rate = rate_of("h100", "wgmma.m64n256k16.bf16")
    assert found.operations == operations
    # On an H100 4096 x 4096 x 4096 in bf16 takes 248 us, and 232 by the whole price.
    slots = device("h100").product_slots
    assert found.seconds == pytest.approx(slots * operations / rate)
    # Rows once, columns for both warpgroups.
    assert found.loaded == SIZE * (128 + 2 * 128) * 2


def cast() -> OperatorModel:
    """What reads the sums of `matrices`."""
    return elementwise("cast", (SIZE, SIZE), [access(0, (SIZE, SIZE), loops(0, 1))])


def test_warpgroups_have_longer_steps_and_sums_in_registers() -> None:
    group, target = chain(matrices(), cast()), device("h100")
    level = target.level("shared")
    tiles = propagate(group, (128, 128))
    assert staging(group, tiles, target, level, 32) == Staging(64, 4 * 128 * 128)
    assert staging(group, tiles, device("a100"), level, 32) == Staging(32)
    # No two steps have room.
    small = replace(level, capacity=2 * 64 * 256 * 2 - 1)
    assert staging(group, tiles, target, small, 32) == Staging(32)
    # Sums that have a place as planned take none of the room of a second tile.
    plain = copy_stages(group, tiles, level, Staging(64))
    kept = copy_stages(group, tiles, level, Staging(64, kept=64 * 1024))
    assert plain is not None
    assert kept is not None
    assert kept.footprint <= level.capacity // 2 < plain.footprint
    # Sums that nothing reads have no place.
    alone = chain(matrices())
    tiles = propagate(alone, (128, 128))
    assert staging(alone, tiles, target, level, 32) == Staging(64)


def test_rings_take_the_place_of_sums_in_registers() -> None:
    group, target = chain(matrices(), cast()), device("h100")
    level = target.level("shared")
    tiles = propagate(group, (128, 256))
    staged = staging(group, tiles, target, level, 32)
    assert staged == Staging(64, 4 * 128 * 256, is_alone=True)
    found = copy_stages(group, tiles, level, staged)
    assert found is not None
    # Four slots of both factors, as the plan has two beside the sums.
    assert found.count == 4
    assert found.footprint == 4 * 64 * (128 + 256) * 2
    assert placed_stages(group, tiles, level, 64, found.count) == 2
    assert found.planned == footprint_bytes(group, tiles, level, 64, 2)
    assert found.planned <= level.capacity
    # One warpgroup of 64 rows has as many sums a lane, and no registers for another.
    tiles = propagate(group, (64, 256))
    assert staging(group, tiles, target, level, 32).is_alone
