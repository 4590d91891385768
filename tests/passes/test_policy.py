"""The choice of tiles: candidates, refusals, and that it is the same every time."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from magweld.passes.tiling import level_trial
from magweld.passes.tiling.cost import Work, work_of
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.level_trial import CACHE_SHARE
from magweld.passes.tiling.needs import Needs
from magweld.passes.tiling.placement import tile_bytes, tile_bytes_between
from magweld.passes.tiling.policy import (
    Scheduler,
    schedule,
    staged_step,
    tile_levels,
)
from magweld.passes.tiling.preference import LONG_RUN
from magweld.passes.tiling.propagation import Propagation, Refusal, Tiles
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.steps import block_of
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import (
    MAX_CANDIDATES,
    MOST_SHAPES,
    NEAR,
    OVERSHOOT,
    candidate_tiles,
    divisors,
    root_sizes,
    shapes_of_tiles,
    tile_sizes,
)
from magweld.passes.tiling.trials import Trials
from magweld.targets import device as named_device
from magweld.targets.device import Device, LevelKind

GRID = access(0, (64, 96), loops(0, 1))


@given(st.integers(1, 5000))
def test_divisors_are_all_divisors(extent: int) -> None:
    assert divisors(extent) == tuple(d for d in range(1, extent + 1) if extent % d == 0)


@given(st.lists(st.integers(1, 5000), max_size=9))
def test_candidates_divide_are_bounded_and_hold_the_whole(extents: list[int]) -> None:
    tiles = list(candidate_tiles([divisors(e) for e in extents]))
    assert 1 <= len(tiles) <= MAX_CANDIDATES
    assert len(set(tiles)) == len(tiles)
    assert tuple(extents) in tiles
    for tile in tiles:
        assert all(e % t == 0 for e, t in zip(extents, tile, strict=True))


@given(st.integers(1, 5000))
def test_sizes_that_do_not_divide_stand_in_for_divisors_far_apart(extent: int) -> None:
    sizes = tile_sizes(extent, ragged=True)
    assert set(divisors(extent)) <= set(sizes)
    assert list(sizes) == sorted(set(sizes))
    for size in set(sizes).difference(divisors(extent)):
        assert -(-extent // size) * size <= extent * (1 + OVERSHOOT)
        assert not any(size / NEAR < d < size * NEAR for d in divisors(extent))


def test_what_divides_well_has_no_other_sizes() -> None:
    for extent in (31, 64, 96, 384, 768, 1000, 3072):
        assert tile_sizes(extent, ragged=True) == divisors(extent)
    assert tile_sizes(127, ragged=True) == (1, 16, 32, 64, 127)
    assert tile_sizes(127, ragged=False) == (1, 127)


@given(st.lists(st.integers(1, 5000), max_size=9))
def test_ragged_candidates_are_bounded_and_hold_the_whole(extents: list[int]) -> None:
    tiles = list(candidate_tiles([tile_sizes(e, ragged=True) for e in extents]))
    assert 1 <= len(tiles) <= MAX_CANDIDATES
    assert tuple(extents) in tiles


def one_core(tile_bytes: int = 1 << 16) -> Device:
    return replace(device(tile_bytes=tile_bytes), threads=1)


def test_tiles_that_do_not_divide_where_nothing_else_fits() -> None:
    group = chain(matmul("mm", 997, 997, 997))
    plan = planned(schedule(group, one_core()))
    assert 1 < shapes_of_tiles((997, 997), plan.tile) <= MOST_SHAPES
    threads = planned(schedule(group, replace(one_core(), threads=32)))
    assert shapes_of_tiles((997, 997), threads.tile) == 1


def test_threads_that_share_a_tile_want_one_shape() -> None:
    group = chain(matmul("mm", 64, 64, 64))
    plan = Scheduler(one_core(1 << 20)).price(group, (48, 64), None)
    assert planned(plan).tiles.grid == 2
    shared = replace(one_core(1 << 20), threads=32)
    refused = Scheduler(shared).price(group, (48, 64), None)
    assert isinstance(refused, Refusal)
    assert refused.rule == "ragged-tile"
    assert "2 shapes, 1 allowed" in refused.detail


def test_a_kernel_has_few_shapes_of_tiles() -> None:
    extents = (40, 40, 40)
    node = elementwise("exp", extents, [access(0, extents, loops(0, 1, 2))])
    refused = Scheduler(one_core(1 << 20)).price(chain(node), (24, 24, 24), None)
    assert isinstance(refused, Refusal)
    assert "8 shapes, 4 allowed" in refused.detail


def test_equally_fast_tiles_that_divide_are_preferred() -> None:
    extents = (96, 1021)
    node = elementwise("exp", extents, [access(0, extents, loops(0, 1))])
    plan = planned(schedule(chain(node), one_core(1 << 20)))
    assert shapes_of_tiles(extents, plan.tile) == 1


def test_inner_loops_are_taken_whole_before_outer_ones() -> None:
    tiles = set(candidate_tiles([(1, 2)] * 8))
    assert {tile[-1] for tile in tiles} == {2}
    assert {tile[0] for tile in tiles} == {1, 2}


def test_a_scalar_has_one_tile() -> None:
    assert list(candidate_tiles(())) == [()]


def test_levels_for_tiles_are_those_of_a_single_unit() -> None:
    assert [level.name for level in tile_levels(device())] == ["l1"]
    assert [level.name for level in tile_levels(named_device("a100"))] == ["shared"]


def planned(plan: Plan | Refusal | None) -> Plan:
    assert isinstance(plan, Plan)
    return plan


def test_a_plan_fits_its_level() -> None:
    target = device(tile_bytes=4096)
    plan = planned(schedule(chain(matmul("mm", 64, 64, 64)), target))
    assert plan.level == "l1"
    assert plan.cost.footprint <= 4096 * CACHE_SHARE
    assert all(64 % size == 0 for size in plan.tile)


def test_what_fits_nowhere_is_refused_with_the_least_it_needs() -> None:
    # A block of one row and of one column of operands, and the element that they make.
    needed = 2 * block_of(1024) * 4 + 64
    found = schedule(chain(matmul("mm", 64, 64, 1024)), device(tile_bytes=2048))
    assert found == Refusal("footprint", f"{needed} bytes needed in l1, 1024 there")


def test_the_reason_is_that_of_the_tile_closest_to_a_plan() -> None:
    # All columns of the first product are needed for every column of the second:
    # a row of tiles must be whole, or the first product is made again for each part.
    pair = chain(matmul("a", 256, 512, 64), matmul("b", 256, 512, 512))
    found = schedule(pair, device(tile_bytes=4096))
    assert isinstance(found, Refusal)
    assert found.rule == "footprint"
    assert "times the arithmetic, 1.25 allowed" in found.detail
    needed, room = map(int, re.findall(r"\d+ (?=bytes|there)", found.detail)[:2])
    assert room == 4096 * CACHE_SHARE < needed
    # With as much memory as it asks for there is a plan, with less there is none.
    share = int(1 / CACHE_SHARE)
    assert isinstance(schedule(pair, device(tile_bytes=needed * share)), Plan)
    short = schedule(pair, device(tile_bytes=(needed - 1) * share))
    assert isinstance(short, Refusal)
    assert short.detail.startswith(f"{needed} bytes")


@pytest.mark.parametrize(
    ("group", "step"),
    [
        (chain(matmul("mm", 64, 64, 100)), 25),
        (chain(matmul("mm", 64, 64, 37)), 1),
        (chain(matmul("a", 64, 36, 8), matmul("b", 64, 64, 36)), 18),
        (chain(row_reduction("sum", 64, 64)), 1),
    ],
    ids=["divides", "prime", "longest", "streams"],
)
def test_contractions_are_staged_in_steps(group: Group, step: int) -> None:
    assert staged_step(group) == step


def test_explicit_memory_may_be_filled() -> None:
    target = device(tile_bytes=64, kind=LevelKind.EXPLICIT)
    node = elementwise("exp", (64, 64), [access(0, (64, 64), loops(0, 1))])
    assert planned(schedule(chain(node), target)).cost.footprint <= 64


def test_too_much_recomputation_is_refused() -> None:
    layers = [convolution(f"c{i}", 65 - 8 * i, 9, 1, 1) for i in range(4)]
    group = chain(*layers)
    # Only the whole result needs nothing twice, and that does not fit.
    found = schedule(group, device(tile_bytes=512))
    assert isinstance(found, Refusal)
    assert found.rule in {"recompute", "footprint"}
    assert planned(schedule(group, device())).tile == layers[-1].whole_tile


def test_equal_groups_get_equal_plans_whatever_their_names() -> None:
    first, second = (chain(matmul(name, 96, 60, 72)) for name in ("a", "b"))
    assert first == second
    assert schedule(first, device()) == schedule(second, device())


def test_a_scheduler_plans_equal_groups_once() -> None:
    scheduler = Scheduler(device())
    first, second = (chain(matmul(name, 96, 60, 72)) for name in ("a", "b"))
    assert scheduler.plan(first) is scheduler.plan(second)


def trials_of(group: Group, target: Device) -> Trials:
    needs = Needs(len(group.root.extents))
    return Trials(group, target, tile_levels(target), staged_step(group), needs)


def tiles_of(group: Group) -> list[tuple[int, ...]]:
    return list(candidate_tiles(root_sizes(group.root, ragged=True)))


@pytest.mark.parametrize(
    "group",
    [
        chain(matmul("a", 96, 60, 72), matmul("b", 96, 40, 60)),
        chain(convolution("a", 244, 3, 1, 1), convolution("b", 242, 3, 1, 1)),
        chain(*(elementwise(n, (64, 96), [GRID]) for n in ("a", "b"))),
    ],
)
@pytest.mark.parametrize("units", [1, 3])
def test_no_tile_is_beyond_its_own_time(group: Group, units: int) -> None:
    trials = trials_of(group, device(units=units))
    plans = [trials.plan(tile, None) for tile in tiles_of(group)]
    possible = [plan for plan in plans if isinstance(plan, Plan)]
    assert len(possible) > 4
    for plan in possible:
        found = planned(trials.plan_within(plan.tile, None, plan.cost.seconds))
        assert trials.placed(found) == plan


def test_what_computes_for_too_long_is_priced_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A tile of all, or three of them, leave one of two units idle.
    group = chain(matmul("a", 96, 60, 5000))
    target = replace(device(units=2, tile_bytes=1 << 24), peak_gflops=1.0)
    best = planned(schedule(group, target)).cost.seconds
    priced: list[int] = []

    def work(group: Group, tiles: Tiles, device: Device) -> Work:
        priced.append(tiles.grid)
        return work_of(group, tiles, device)

    monkeypatch.setattr(level_trial, "work_of", work)
    trials, tiles = trials_of(group, target), tiles_of(group)
    found = [trials.plan_within(tile, None, best * 1.01) for tile in tiles]
    assert found.count(None) > len(tiles) / 4
    assert 1 not in priced
    assert 2 in priced


def growing_groups() -> list[Group]:
    """Products with one more operator behind or in front from group to group."""
    read = access(0, (96, 40), loops(0, 1))
    second = [matmul("b", 96, 40, 60), matmul("b", 96, 40, 600)]
    exponential = elementwise("exp", (96, 40), [read])
    return [
        *(chain(node) for node in second),
        *(chain(matmul("a", 96, node.extents[2], 72), node) for node in second),
        *(chain(node, exponential) for node in second),
        chain(*second[:1], exponential, exponential),
        chain(exponential, row_reduction("sum", 96, 40)),
    ]


@pytest.mark.parametrize(
    "target", [device(), named_device("cpu"), named_device("a100")]
)
def test_what_was_planned_before_makes_no_difference(target: Device) -> None:
    groups = growing_groups()
    for order in (groups, groups[::-1]):
        shared = Scheduler(target)
        for group in order:
            for slack in (0.03, 1.0):
                known = shared.ranking(group, slack)
                assert known == Scheduler(target).ranking(group, slack)


def bordered_convolution() -> OperatorModel:
    """A window of nine over an image with four more places on either side."""
    node = convolution("c", 252, 9, 1, 1)
    window = node.reads[0].index
    image = access(0, (244,), window, border=((4, 4),))
    return replace(node, reads=(image, node.reads[1]))


@pytest.mark.parametrize(
    "group",
    [
        *growing_groups(),
        chain(convolution("a", 252, 9, 1, 1), bordered_convolution()),
        chain(*(elementwise(n, (64, 96), [GRID]) for n in ("a", "b", "c"))),
    ],
)
def test_room_is_known_within_bounds_before_buffers_are_placed(group: Group) -> None:
    target = device()
    step, level = staged_step(group), target.levels[1]
    propagation = Propagation(group)
    reached = 0
    for tile in tiles_of(group):
        tiles = propagation.tiles(tile)
        assert isinstance(tiles, Tiles)
        least, most = tile_bytes_between(group, tiles)
        placed = tile_bytes(group, tiles, level, step)
        assert 0 < least <= placed <= most
        reached += placed == most
    assert len(group.nodes) > 1 or reached


def test_what_an_operator_does_is_found_once_for_groups_that_have_it() -> None:
    shared, last = Needs(2), matmul("b", 96, 40, 60)
    groups = (chain(matmul("a", 96, 60, depth), last) for depth in (72, 80))
    found = [Propagation(g, None, shared).tiles((24, 40)) for g in groups]
    first, second = (tiles for tiles in found if isinstance(tiles, Tiles))
    assert first.parts[1] is second.parts[1]
    assert first.parts[0] != second.parts[0]
    alone = Propagation(chain(last), None, shared).tiles((24, 40))
    assert isinstance(alone, Tiles)
    assert alone.parts[0] != first.parts[1]  # it reads both operands from outside


def test_tiles_that_were_fast_before_are_tried_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = (chain(matmul("a", 96, 60, depth)) for depth in (4000, 5000))
    priced: list[int] = []

    def work(group: Group, tiles: Tiles, device: Device) -> Work:
        priced.append(tiles.grid)
        return work_of(group, tiles, device)

    monkeypatch.setattr(level_trial, "work_of", work)
    scheduler, counts = Scheduler(device(tile_bytes=1 << 24)), []
    for group in (small, large):
        scheduler.ranking(group, 0.03)
        counts.append(len(priced))
        priced.clear()
    first, second = counts
    assert second < first


@pytest.mark.parametrize("kind", [OperatorKind.MOVE, OperatorKind.OTHER])
def test_what_is_computed_whole_is_one_tile(kind: OperatorKind) -> None:
    whole = (None, None)
    node = OperatorModel(
        name="concat",
        kind=kind,
        extents=(64, 8),
        parallel=(0, 1),
        reads=(access(0, (64, 8), whole),),  # type: ignore[arg-type]
        writes=(access(0, (64, 8), whole),),  # type: ignore[arg-type]
        flops=0,
    )
    plan = planned(schedule(chain(node), device()))
    assert plan.tile == (64, 8)
    assert plan.tiles.grid == 1


def test_traffic_apart_counts_every_tensor_once() -> None:
    read = access(0, (64, 8), loops(0, 1))
    group = chain(*(elementwise(f"exp{i}", (64, 8), [read]) for i in range(3)))
    assert Scheduler(device()).traffic_apart(group) == 3 * 2 * 64 * 8 * 4


def test_traffic_apart_of_products_is_that_of_their_plans() -> None:
    scheduler = Scheduler(device(tile_bytes=4096))
    group = chain(matmul("a", 64, 64, 64), matmul("b", 64, 64, 64))
    alone = planned(scheduler.plan(chain(matmul("a", 64, 64, 64)))).cost.traffic
    assert alone > 3 * math.prod((64, 64)) * 4
    assert scheduler.traffic_apart(group) == 2 * alone


def test_rows_that_follow_each_other_are_taken_together() -> None:
    # Rows of 512 bytes: two of one matrix, not the first ones of two.
    shape = (64, 64, 128)
    rows = elementwise("rows", shape, [access(0, shape, loops(0, 1, 2))])
    plan = schedule(chain(rows), device())
    assert isinstance(plan, Plan)
    assert plan.tile[2] == shape[2]
    assert plan.tile[1] * shape[2] * 4 >= LONG_RUN


def test_a_group_may_read_small_tensors_again() -> None:
    product = matmul("product", 64, 32, 16)
    group = chain(product, row_reduction("maximum", 64, 32))
    scheduler = Scheduler(device())
    apart = scheduler.traffic_apart(group)
    assert apart < scheduler.most_traffic(group) < apart * 1.05
