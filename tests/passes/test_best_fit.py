"""The best-fit allocator: whatever the order of calls, buffers never share a byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.passes.tiling.best_fit import BestFit

# A size to allocate, or None to release the buffer that the second number picks.
CALLS = st.lists(st.tuples(st.none() | st.integers(0, 500), st.integers(0, 100)))


@given(CALLS, st.sampled_from([1, 16, 64]))
def test_buffers_are_apart_aligned_and_within_the_memory(
    calls: list[tuple[int | None, int]], alignment: int
) -> None:
    memory = BestFit(alignment)
    live: dict[int, int] = {}
    requested = 0
    for size, pick in calls:
        if size is None:
            if live:
                offset = sorted(live)[pick % len(live)]
                memory.release(offset)
                del live[offset]
            continue
        offset = memory.allocate(size)
        requested += max(1, -(-size // alignment)) * alignment
        assert offset % alignment == 0
        assert offset + size <= memory.high_water
        assert not any(
            offset < start + max(1, other) and start < offset + max(1, size)
            for start, other in live.items()
        )
        live[offset] = size
    assert memory.high_water <= requested


def test_the_smallest_hole_that_is_large_enough_is_taken() -> None:
    memory = BestFit(1)
    large, _, small, _ = (memory.allocate(size) for size in (100, 1, 50, 1))
    memory.release(large)
    memory.release(small)
    assert memory.allocate(40) == small
    assert memory.allocate(10) == small + 40
    assert memory.allocate(60) == large


def test_neighbouring_holes_become_one() -> None:
    memory = BestFit(1)
    offsets = [memory.allocate(10) for _ in range(4)]
    for offset in (offsets[2], offsets[0], offsets[1]):
        memory.release(offset)
    assert memory.allocate(30) == 0
    assert memory.high_water == 40


def test_a_hole_at_the_end_grows() -> None:
    memory = BestFit(1)
    memory.allocate(10)
    memory.release(memory.allocate(10))
    assert memory.allocate(25) == 10
    assert memory.high_water == 35


def test_what_is_not_in_use_cannot_be_released() -> None:
    memory = BestFit(64)
    offset = memory.allocate(1)
    memory.release(offset)
    with pytest.raises(ValueError, match="no buffer in use at offset 0"):
        memory.release(offset)
