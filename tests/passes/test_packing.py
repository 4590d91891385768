"""Buffers with known lifetimes in one memory."""

from __future__ import annotations

import random

import pytest

from magweld.passes.analysis.packing import Buffer, pack


@pytest.mark.parametrize("seed", range(30))
def test_buffers_that_are_used_together_have_bytes_of_their_own(seed: int) -> None:
    chance = random.Random(seed)
    buffers = []
    for first in range(20):
        size = chance.choice([0, 1, 63, 64, 65, 300, 4096])
        buffers.append(Buffer(size, first, first + chance.randrange(6)))
    packing = pack(buffers, 64)
    for number, buffer in enumerate(buffers):
        start = packing.offsets[number]
        assert start % 64 == 0
        assert start + buffer.size <= packing.size
        for other in range(number):
            meets = buffers[other].first <= buffer.last <= buffers[other].last
            meets |= buffer.first <= buffers[other].last <= buffer.last
            end = packing.offsets[other] + buffers[other].size
            if meets and buffer.size and buffers[other].size:
                apart = start >= end or start + buffer.size <= packing.offsets[other]
                assert apart


def test_a_large_buffer_fits_where_two_small_ones_were() -> None:
    # In the order of time the third one finds a gap that is too short.
    buffers = [Buffer(64, 0, 1), Buffer(64, 1, 2), Buffer(128, 2, 3)]
    assert pack(buffers, 64).size == 192
    assert pack([], 64).size == 0
