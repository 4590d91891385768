"""Offsets of buffers in shared memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magweld.passes.gpu.place_shared_memory import Lifetime, place
from magweld.passes.gpu.structure import SHARED_ALIGNMENT

LIFETIMES = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 20), st.integers(0, 10)).map(
        lambda t: Lifetime(None, t[0], t[1], t[1] + t[2])
    ),
    max_size=12,
)


@given(LIFETIMES)
def test_buffers_that_live_together_do_not_overlap(lifetimes: list[Lifetime]) -> None:
    offsets, size = place(lifetimes)
    for i, a in enumerate(lifetimes):
        assert offsets[i] % SHARED_ALIGNMENT == 0
        assert offsets[i] + a.size <= size
        for j, b in enumerate(lifetimes[:i]):
            together = a.first <= b.last and b.first <= a.last
            apart = (
                offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]
            )
            assert apart or not together


def test_dead_buffers_give_their_place() -> None:
    first, other, later = (
        Lifetime(0, 64, 0, 1),
        Lifetime(1, 64, 0, 3),
        Lifetime(2, 64, 2, 3),
    )
    offsets, size = place([first, other, later])
    assert offsets[2] == offsets[0]
    assert size == 128
