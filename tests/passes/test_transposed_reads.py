"""What is read across the rows of a tile: it is copied where there is room for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, device, elementwise, loops, row_reduction

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.placement import Placement, place_tile
from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import Tiles, propagate
from magweld.passes.tiling.regions import Access, LinearIndex
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.transposed_reads import TransposedRead
from magweld.targets.device import Level, LevelKind

SIZE = 256
SHAPE = (SIZE, SIZE)
ALONG, ACROSS = access(0, SHAPE, loops(0, 1)), access(0, SHAPE, loops(1, 0))
SHARED = Level("shared", 4096, 800.0, 64, 4, LevelKind.EXPLICIT)


def group_of(read: Access) -> Group:
    return chain(elementwise("node", SHAPE, [read]))


def placement(group: Group, tile: tuple[int, ...], level: Level) -> Placement:
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    return place_tile(group, tiles, level, 1)


def test_a_transposed_operand_is_read_across_rows() -> None:
    (read,) = group_of(ACROSS).nests().transposed_reads(0)
    assert read == TransposedRead(0, 0, (1, 0), (0, 1))


@pytest.mark.parametrize(
    "read",
    [
        ALONG,
        access(0, (SIZE,), loops(0)),  # one element a row
        access(0, (SIZE, SIZE, 4), (*loops(1, 0), LinearIndex((), 2))),
        access(0, (SIZE, 2 * SIZE), (*loops(1), LinearIndex(((0, 2),)))),
        access(0, (SIZE, 1), (*loops(0), LinearIndex())),
    ],
    ids=["along", "column", "one of four", "every second", "unit"],
)
def test_what_is_no_row_of_others_is_not(read: Access) -> None:
    assert not group_of(read).nests().transposed_reads(0)


def test_a_slice_is_read_as_the_whole_is() -> None:
    part = (*loops(1), LinearIndex(((0, 1),), 64))
    assert group_of(access(0, (SIZE, 512), part)).nests().transposed_reads(0)


def test_the_rows_are_those_of_the_nest() -> None:
    outer = elementwise("outer", SHAPE, [ACROSS])
    nests = chain(elementwise("inner", SHAPE, [ALONG]), outer).nests()
    assert [read.node for read in nests.transposed_reads(1)] == [0]
    # Twice across is along.
    nests = chain(elementwise("inner", SHAPE, [ACROSS]), outer).nests()
    assert not nests.transposed_reads(1)


def test_reductions_have_rows_of_their_own() -> None:
    reduction = replace(row_reduction("sum", SIZE, SIZE), reads=(ACROSS,))
    assert not chain(reduction).nests().transposed_reads(0)


def test_a_copy_is_placed_where_threads_share_memory() -> None:
    group = group_of(ACROSS)
    found = placement(group, (16, 32), SHARED)
    assert found.size == found.rows[0, 0, 0].size == 16 * 32 * 4
    cache = replace(SHARED, kind=LevelKind.CACHE)
    assert not placement(group, (16, 32), cache).rows
    assert not placement(group_of(ALONG), (16, 32), SHARED).rows


def test_columns_and_what_has_no_room_are_not_copied() -> None:
    # A column of the result is a row of what is read.
    for tile in ((1, 64), (64, 1), (64, 64)):
        assert placement(group_of(ACROSS), tile, SHARED).size == 0


def test_tiles_are_chosen_for_the_copy_to_fit_in_whole_transactions() -> None:
    target = replace(device(tile_bytes=4096, kind=LevelKind.EXPLICIT), threads=32)
    plan = schedule(group_of(ACROSS), target)
    assert isinstance(plan, Plan)
    rows, columns = plan.tile
    assert plan.cost.footprint == rows * columns * 4 <= 4096
    assert min(rows, columns) * 4 >= target.levels[0].transaction
