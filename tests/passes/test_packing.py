"""Buffers with known lifetimes in one memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.passes.tiling.packing import Buffer, pack, slots_of

BUFFERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 63, 64, 65, 300, 4096]),
        st.integers(0, 20),
        st.integers(0, 10),
    ).map(lambda t: Buffer(t[0], t[1], t[1] + t[2])),
    max_size=20,
)


@pytest.mark.parametrize("alignment", [16, 64])
@given(buffers=BUFFERS)
def test_buffers_that_are_used_together_have_bytes_of_their_own(
    alignment: int, buffers: list[Buffer]
) -> None:
    packing = pack(buffers, alignment)
    ends = [at + b.size for at, b in zip(packing.offsets, buffers, strict=True)]
    for number, buffer in enumerate(buffers):
        start = packing.offsets[number]
        assert start % alignment == 0
        assert ends[number] <= packing.size
        for other in range(number):
            if not (buffer.size and buffers[other].size):
                continue
            together = buffer.first <= buffers[other].last
            together &= buffers[other].first <= buffer.last
            apart = start >= ends[other] or ends[number] <= packing.offsets[other]
            assert apart or not together


def test_dead_buffers_give_their_place() -> None:
    buffers = [Buffer(64, 0, 1), Buffer(64, 0, 3), Buffer(64, 2, 3)]
    packing = pack(buffers, 64)
    assert packing.offsets[2] == packing.offsets[0]
    assert packing.size == 128


def test_a_large_buffer_fits_where_two_small_ones_were() -> None:
    # In the order of time the third one finds a gap that is too short.
    buffers = [Buffer(64, 0, 1), Buffer(64, 1, 2), Buffer(128, 2, 3)]
    assert pack(buffers, 64).size == 192
    assert pack([], 64).size == 0


@given(buffers=BUFFERS)
def test_buffers_of_one_slot_are_never_used_together(buffers: list[Buffer]) -> None:
    slots = slots_of(buffers)
    assert len(slots) == len(buffers)
    for number, buffer in enumerate(buffers):
        for other in range(number):
            if slots[number] == slots[other]:
                assert not buffer.meets(buffers[other])
    together = max(
        (sum(b.first <= at <= b.last for b in buffers) for at in range(31)), default=0
    )
    assert len(set(slots)) >= together


def test_a_buffer_takes_the_smallest_slot_that_is_free() -> None:
    long, large, small, late = (
        Buffer(64, 0, 9),
        Buffer(4096, 0, 1),
        Buffer(256, 0, 1),
        Buffer(200, 2, 3),
    )
    assert slots_of([long, large, small, late]) == (2, 0, 1, 1)
