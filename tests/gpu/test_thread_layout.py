"""How threads share an iteration space."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.passes.gpu.thread_layout import (
    ThreadLayout,
    balanced_layout,
    coalesced_layout,
    merge_threads,
)

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
    ("extents", "threads", "expected"),
    [((64, 64), 256, (16, 16)), ((128, 32), 256, (32, 8)), ((1, 8, 8), 4, (1, 2, 2))],
)
def test_contractions_are_shared_in_squares(extents, threads, expected) -> None:
    assert balanced_layout(extents, threads).threads == expected


@given(EXTENTS, st.integers(1, 256))
def test_layouts_use_no_more_threads_than_there_are(extents, threads) -> None:
    for layout in (
        coalesced_layout(extents, threads, 32),
        balanced_layout(extents, threads),
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
