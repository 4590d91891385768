"""How threads share an iteration space."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magweld.passes.gpu.streaming_layout import (
    Stream,
    Subgroup,
    rest_loop,
    streaming_layout,
)
from magweld.passes.gpu.thread_layout import (
    ThreadLayout,
    balanced_layout,
    coalesced_layout,
    merge_threads,
)

WARP = Subgroup(lanes=32, sector=32)

# Layouts are looked for among all divisors of all extents.
EXTENTS = st.one_of(
    st.lists(st.integers(1, 64), max_size=3),
    st.lists(st.integers(1, 12), min_size=4, max_size=4),
).map(tuple)


@pytest.mark.parametrize(
    ("extents", "threads", "expected"),
    [
        ((4, 512), 128, (4, 32)),
        ((1, 4096), 256, (1, 256)),
        ((16, 384), 256, (8, 32)),
        ((7, 49), 256, (1, 49)),
        ((3,), 64, (3,)),
        ((), 64, ()),
    ],
)
def test_rows_are_read_by_whole_subgroups(extents, threads, expected) -> None:
    assert coalesced_layout(extents, threads, 32).threads == expected


@pytest.mark.parametrize(
    ("extents", "operands", "threads", "expected"),
    [
        ((64, 64), ((0,), (1,)), 256, (16, 16)),
        ((128, 32), ((0,), (1,)), 256, (32, 8)),
        ((1, 8, 8), ((0, 1), (0, 2)), 4, (1, 2, 2)),
        # Rows of 4 x 4 pixels by 64 channels: as many of both.
        ((64, 4, 4), ((0,), (1, 2)), 64, (16, 1, 4)),
    ],
)
def test_contractions_are_shared_in_squares(
    extents, operands, threads, expected
) -> None:
    assert balanced_layout(extents, operands, threads).threads == expected


@pytest.mark.parametrize(
    ("extents", "steps", "width", "expected"),
    [
        ((32, 49), (98, 2), 2, (4, 49)),  # rows of 98 bytes: 196 threads, not 224
        ((32, 49), (196, 4), 4, (4, 49)),
        ((8, 9, 9), (784, 56, 4), 4, (8, 3, 9)),  # a part of an image
        ((16, 384), (1536, 4), 4, (8, 32)),
        ((32, 6), (96, 16), 16, (32, 6)),  # pieces of rows of 96 bytes
    ],
)
def test_threads_lie_side_by_side_in_odd_rows(extents, steps, width, expected) -> None:
    streams = [Stream(steps, width)]
    assert streaming_layout(extents, 256, 32, streams, WARP).threads == expected


@pytest.mark.parametrize(
    ("extents", "steps", "width", "expected"),
    [
        ((197, 8), (1536, 16), 16, 0),  # 192 rows in pieces, then five
        ((3, 197), (788, 4), 4, None),  # side by side as they are
        ((192, 8), (1536, 16), 16, None),
        ((13, 8), (1536, 16), 16, None),
        ((257, 2), (64, 16), 16, 0),  # two threads would have all of it
    ],
)
def test_the_rest_of_rows_is_shared_apart(extents, steps, width, expected) -> None:
    streams = [Stream(steps, width)]
    assert rest_loop(extents, 256, 32, streams, WARP) == expected
    assert rest_loop(extents, 256, 32, [], WARP) is None


def test_without_streams_as_many_threads_as_divide_rows_work() -> None:
    assert streaming_layout((32, 49), 256, 32, [], WARP).threads == (32, 7)


@settings(max_examples=15)
@given(EXTENTS, st.integers(1, 256))
def test_layouts_use_no_more_threads_than_there_are(extents, threads) -> None:
    side_by_side = [math.prod(extents[i + 1 :]) * 4 for i in range(len(extents))]
    stream = Stream(tuple(side_by_side), 4)
    for layout in (
        coalesced_layout(extents, threads, 32),
        balanced_layout(extents, [range(len(extents))], threads),
        streaming_layout(extents, threads, 32, [stream], WARP),
    ):
        assert layout.total <= threads
        pairs = zip(layout.threads, layout.per_thread, strict=True)
        assert tuple(a * b for a, b in pairs) == extents


@given(st.integers(1, 1024))
def test_merging_takes_at_most_two_rounds_more(extent) -> None:
    count = merge_threads(extent, 8)
    assert extent % count == 0
    assert count <= math.isqrt(extent)


def test_a_count_must_divide_its_extent() -> None:
    with pytest.raises(ValueError, match="4 threads do not divide 6 iterations"):
        ThreadLayout((6,), (4,))
