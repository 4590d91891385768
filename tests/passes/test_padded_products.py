"""Products on tiles that are no whole fragments: what is computed, what it costs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from operator_models import chain, matmul

from magweld.passes.tiling.matrix_units import matrix_work, share_among_subgroups
from magweld.passes.tiling.padded_products import (
    LINES,
    PaddedProduct,
    padded_of,
    padded_work,
)
from magweld.passes.tiling.placement import footprint_bytes
from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import propagate
from magweld.passes.tiling.regions import OperatorModel
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets import device

SIZES = [(49, 32), (49, 49), (197, 16), (197, 64), (37, 29), (32, 29), (16, 60)]


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_all_matrix_units_share_what_is_computed(rows: int, columns: int) -> None:
    product = PaddedProduct(rows, columns, 64)
    assert product.is_padded
    high, wide = product.extents
    assert high >= rows
    assert wide >= columns
    assert high % LINES == wide % LINES == 0
    assert high * wide <= 2 * rows * columns
    for one, subgroups in ((8, 8), (16, 4)):
        tiles = high // LINES, wide // one
        shared = share_among_subgroups(tiles, subgroups, (LINES, one))
        assert math.prod(shared) % 4 == 0


@pytest.mark.parametrize(
    "product",
    [
        PaddedProduct(32, 24, 64),  # whole fragments
        PaddedProduct(1, 512, 64),  # most of it would be left
        PaddedProduct(49, 32, 40),  # half a step
        PaddedProduct(197, 256, 64),  # more sums than registers
    ],
    ids=str,
)
def test_other_products_are_not_padded(product: PaddedProduct) -> None:
    assert not product.is_padded


def halves(m: int, n: int, k: int) -> OperatorModel:
    """Return rows times rows, both of which lie along the reduction."""
    node = matmul("tokens", m, n, k)
    left, right = (replace(read, element_bytes=2) for read in node.reads)
    right = replace(right, shape=right.shape[::-1], index=right.index[::-1])
    return replace(node, reads=(left, right), factors="bf16")


def test_the_time_is_that_of_instructions_with_what_is_left() -> None:
    one = device("h100")
    part = propagate(chain(halves(197, 768, 64)), (197, 64)).parts[-1]
    assert matrix_work(part, one) is None
    work = padded_work(part, one)
    assert work is not None
    assert work.operations == 2 * 208 * 64 * 64
    rates = {found.name: found.gflops for found in one.instructions}
    seconds = work.operations / (rates["mma.m16n8k16.bf16"] * 1e9)
    assert work.seconds == pytest.approx(seconds)
    assert padded_work(part, device("v100")) is None


def test_factors_made_in_the_tile_are_not_padded() -> None:
    first, second = matmul("first", 49, 64, 32), halves(49, 48, 64)
    read, *others = second.reads
    second = replace(second, reads=(replace(read, argument=0), *others))
    part = propagate(chain(first, second), (49, 48)).parts[-1]
    assert padded_of(part) is None


def test_rows_in_memory_are_whole_fragments() -> None:
    node = halves(49, 48, 64)
    left, right = node.reads
    across = replace(left, shape=left.shape[::-1], index=left.index[::-1])
    group = chain(replace(node, reads=(across, right)))
    assert padded_of(propagate(group, (49, 48)).parts[-1]) is None


def test_footprints_hold_steps_and_the_sums() -> None:
    group, one = chain(halves(197, 768, 64)), device("h100")
    tiles = propagate(group, (197, 64))
    sums = 208 * 64 * 4
    step = (208 + 64) * 32 * 2
    shared = one.level("shared")
    for stages in (1, 2):
        taken = footprint_bytes(group, tiles, shared, 32, stages)
        most = max(sums, step * stages)
        assert most <= taken <= sums + step * stages


def test_the_planner_takes_tiles_that_are_padded() -> None:
    plan = schedule(chain(halves(197, 768, 768)), device("h100"))
    assert isinstance(plan, Plan)
    assert padded_of(plan.tiles.parts[-1]) is not None
