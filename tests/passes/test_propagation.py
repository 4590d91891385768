"""Regions and their propagation: what a tile of the last operator needs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import (
    access,
    chain,
    convolution,
    elementwise,
    loops,
    matmul,
    row_reduction,
)

from magweld.passes.tiling.clamps import Clamp
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.propagation import Refusal, Tiles, propagate
from magweld.passes.tiling.regions import ZERO, Interval, LinearIndex, OperatorKind


def interval(size: int, *terms: tuple[int, int]) -> Interval:
    return Interval(LinearIndex(terms), size)


def planned(group: Group, *tile: int) -> Tiles:
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    return tiles


def refused(group: Group, *tile: int) -> Refusal:
    refusal = propagate(group, tile)
    assert isinstance(refusal, Refusal)
    return refusal


class TestLinearIndex:
    def test_spans_what_its_loops_reach(self) -> None:
        index = LinearIndex(((0, 2), (1, 3)))
        assert index.extent((4, 3)) == 1 + 2 * 3 + 3 * 2
        assert ZERO.extent(()) == 1

    def test_substitution_multiplies_and_adds_up(self) -> None:
        index = LinearIndex(((0, 2), (1, 1)), constant=1)
        inner = (LinearIndex(((5, 3),), constant=4), LinearIndex(((5, 1), (6, 1))))
        assert index.substitute(inner) == LinearIndex(((5, 7), (6, 1)), constant=9)

    def test_substitution_drops_what_cancels_out(self) -> None:
        index = LinearIndex(((0, 1), (1, -1)))
        same = LinearIndex(((3, 1),))
        assert index.substitute((same, same)) == ZERO


def test_a_convolution_reads_its_halo() -> None:
    node = convolution("conv", length=32, taps=3, stride=2, dilation=2)
    assert node.extents == (14, 3)
    box = node.root_box((7,))
    assert node.reads[0].box(box) == (interval(1 + 2 * 6 + 2 * 2, (0, 2)),)
    assert node.reads[1].box(box) == (interval(3),)


def test_the_whole_tile_reads_whole_tensors_without_offset() -> None:
    node = convolution("conv", length=9, taps=3, stride=1, dilation=1)
    assert node.reads[0].box(node.root_box((7,))) == (interval(9),)


def test_constant_indices_read_one_element() -> None:
    broadcast = access(0, (1, 6), (ZERO, *loops(1)))
    node = elementwise("add", (4, 6), [broadcast])
    assert broadcast.box(node.root_box((2, 3))) == (interval(1), interval(3, (1, 1)))


def test_permutations_are_followed_backwards() -> None:
    producer = elementwise("exp", (6, 4), [access(0, (6, 4), loops(0, 1))])
    turned = elementwise("turn", (4, 6), [access(0, (6, 4), loops(1, 0))])
    tiles = planned(chain(producer, turned), 2, 3)
    assert tiles.boxes[0] == (interval(3, (1, 1)), interval(2, (0, 1)))
    assert producer.tile_of(tiles.boxes[0]) == (3, 2)
    assert tiles.grid == 4
    assert tiles.recompute == 1.0


def test_strides_and_halos_add_up_through_two_convolutions() -> None:
    first = convolution("first", length=31, taps=3, stride=1, dilation=1)
    second = convolution("second", length=29, taps=3, stride=2, dilation=1)
    tiles = planned(chain(first, second), 7)
    # 7 results need 15 of the first one, every tile one of them again.
    assert tiles.boxes == (
        (interval(15, (0, 2)), interval(3)),
        (interval(7, (0, 1)), interval(3)),
    )
    done, needed = 2 * (15 * 3 * 2 + 7 * 3 * 2), 29 * 3 * 2 + 14 * 3 * 2
    assert tiles.recompute == pytest.approx(done / needed)


def test_a_row_reduction_wants_whole_rows() -> None:
    product = matmul("qk", 64, 32, 16)
    maximum = row_reduction("max", 64, 32)
    tiles = planned(chain(product, maximum), 8)
    assert product.tile_of(tiles.boxes[0]) == (8, 32)
    assert tiles.parts[0].points == 8 * 32 * 16
    assert tiles.recompute == 1.0


def test_broadcast_producers_are_computed_for_every_tile() -> None:
    statistic = row_reduction("mean", 8, 4)
    reader = elementwise(
        "sub", (8, 6), [access(0, (8,), loops(0)), access(1, (8, 6), loops(0, 1))]
    )
    assert planned(chain(statistic, reader), 2, 6).recompute == 1.0
    tiles = planned(chain(statistic, reader), 2, 3)
    assert tiles.recompute == pytest.approx((2 * 8 * 4 + 48) / (8 * 4 + 48))


def test_two_readers_of_the_same_tile_share_it() -> None:
    group = _diamond(loops(0, 1), loops(0, 1))
    assert planned(group, 2, 3).boxes[0] == (interval(2, (0, 1)), interval(3, (1, 1)))


def test_a_reader_of_all_of_a_dimension_widens_the_tile() -> None:
    group = _diamond(loops(0, 1), loops(1, 0))
    assert planned(group, 6, 2).boxes[0] == (interval(6), interval(6))


def test_two_readers_of_different_tiles_are_refused() -> None:
    refusal = refused(_diamond(loops(0, 1), loops(1, 0)), 2, 3)
    assert refusal.rule == "conflicting-tiles"
    assert "two consumers need different tiles of source" in refusal.detail


def _diamond(left: tuple[LinearIndex, ...], right: tuple[LinearIndex, ...]) -> Group:
    """One operator reads another twice, by two indices."""
    source = elementwise("source", (6, 6), [access(0, (6, 6), loops(0, 1))])
    both = elementwise(
        "both", (6, 6), [access(0, (6, 6), left), access(0, (6, 6), right)]
    )
    return Group((source, both), ((Source(None, 0),), (Source(0, 1), Source(0, 1))))


def test_a_window_that_hangs_over_an_edge_moves_inside() -> None:
    source = elementwise("source", (6,), [access(0, (6,), loops(0))])
    inside = (LinearIndex(((0, 1),), -1),)
    padding = elementwise("conv", (8,), [access(0, (6,), inside, border=((1, 1),))])
    # Tiles of two begin at -1, 1, 3 and 5: the last two positions are 3 and 4.
    tiles = planned(chain(source, padding), 2)
    assert tiles.clamps == (Clamp(LinearIndex(((0, 1),), -1), highest=4),)
    assert tiles.boxes[0] == (Interval(LinearIndex(((1, 1),)), 2),)
    assert planned(chain(source, padding), 8).boxes[0] == (interval(6),)


def test_readers_of_the_same_window_share_its_clamp() -> None:
    source = elementwise("source", (6,), [access(0, (6,), loops(0))])
    read = access(0, (6,), (LinearIndex(((0, 1),), -1),), border=((1, 1),))
    both = elementwise("both", (8,), [read, replace(read, argument=1)])
    group = Group((source, both), ((Source(None, 0),), (Source(0, 1), Source(0, 1))))
    assert len(planned(group, 2).clamps) == 1
    plain = elementwise("both", (8,), [read, access(1, (6,), loops(0))])
    assert refused(replace(group, nodes=(source, plain)), 2).rule == "conflicting-tiles"


def test_what_a_window_moves_inside_is_no_output() -> None:
    source = elementwise("source", (6,), [access(0, (6,), loops(0))])
    inside = (LinearIndex(((0, 1),), -1),)
    padding = elementwise("conv", (8,), [access(0, (6,), inside, border=((1, 1),))])
    group = replace(chain(source, padding), outputs=((0, 0),))
    assert refused(group, 2).rule == "written-twice"


def test_unknown_regions_are_refused() -> None:
    source = elementwise("source", (6,), [access(0, (6,), loops(0))])
    concat = replace(source, name="concat", kind=OperatorKind.MOVE)
    assert refused(chain(concat, source), 6).rule == "unknown-region"
    assert refused(chain(source, concat), 6).rule == "unknown-region"


def test_a_node_that_nothing_in_the_group_reads_is_refused() -> None:
    source = elementwise("source", (6,), [access(0, (6,), loops(0))])
    group = Group((source, source), ((Source(None, 0),), (Source(None, 0),)))
    assert refused(group, 3).rule == "dead-producer"


def test_each_result_has_its_own_index() -> None:
    both = elementwise("both", (4, 6), [access(0, (4, 6), loops(0, 1))])
    both = replace(both, writes=(*both.writes, access(1, (6, 4), loops(1, 0))))
    reader = elementwise("exp", (6, 4), [access(0, (6, 4), loops(0, 1))])
    group = Group((both, reader), ((Source(None, 0),), (Source(0, 1, result=1),)))
    tiles = planned(group, 3, 2)
    assert tiles.boxes[0] == (interval(2, (1, 1)), interval(3, (0, 1)))


def test_an_empty_result_is_one_tile() -> None:
    nothing = elementwise("exp", (0, 3), [access(0, (0, 3), loops(0, 1))])
    assert nothing.whole_tile == (1, 3)
    tiles = planned(chain(nothing), *nothing.whole_tile)
    assert tiles.grid == 1
    assert nothing.tile_of(tiles.boxes[0]) == (1, 3)


@given(
    places=st.integers(1, 6),
    tile=st.integers(1, 4),
    taps=st.integers(1, 4),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 3),
)
def test_regions_hold_what_every_tile_reads(
    places: int, tile: int, taps: int, strides: tuple[int, int], dilation: int
) -> None:
    """Compares with the elements that are read, tile by tile."""
    count = places * tile
    middle = (count - 1) * strides[1] + (taps - 1) * dilation + 1
    length = (middle - 1) * strides[0] + taps
    first = convolution("first", length, taps, strides[0], 1)
    second = convolution("second", middle, taps, strides[1], dilation)
    group = chain(first, second)
    tiles = planned(group, tile)
    (region,) = first.reads[0].box(tiles.boxes[0])
    for number in range(places):
        start = number * tile
        inner = [
            i * strides[1] + k * dilation
            for i, k in itertools.product(range(start, start + tile), range(taps))
        ]
        read = [j * strides[0] + k for j in inner for k in range(taps)]
        low = sum(factor * start for _, factor in region.offset.terms)
        assert low <= min(read)
        assert max(read) < low + region.size
        assert low + region.size <= length
