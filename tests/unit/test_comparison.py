"""Two ways to run the same are compared by few timed calls, more where they overlap."""

from __future__ import annotations

import pytest

from magweld.comparison import CALLS, Turns, TurnsOfOneSize, TurnsOfSizes


def calls_until_known(turns: Turns, *seconds: float) -> int:
    """Return how many calls decide; each takes the seconds of its way, the first more.

    Every fourth call is interrupted for a second.
    """
    previous = None
    for number in range(1, 2 * CALLS):
        way = turns.way
        cold = 0.0 if way == previous else 9.0
        turns.add(way, seconds[way] + cold + (number % 4 == 0))
        previous = way
        if turns.ratio is not None:
            return number
    raise AssertionError("it is never known")


@pytest.mark.parametrize("seconds", [(5.0, 1.0), (1.0, 5.0), (3.0, 1.5)])
def test_ways_apart_are_known_after_two_turns_each(
    seconds: tuple[float, float],
) -> None:
    turns = Turns()
    assert calls_until_known(turns, *seconds) == 12
    assert turns.ratio == seconds[0] / seconds[1]


@pytest.mark.parametrize("seconds", [(1.1, 1.0), (1.0, 1.0), (1.0, 1.25)])
def test_times_that_overlap_wait_for_more(seconds: tuple[float, float]) -> None:
    turns = Turns()
    assert calls_until_known(turns, *seconds) == CALLS
    assert turns.ratio == seconds[0] / seconds[1]


def test_a_way_answers_until_its_calls_are_timed() -> None:
    turns = Turns()
    for _ in range(3):
        assert turns.way == 0
        turns.add(1, 1.0)  # begun in an earlier turn
    assert turns.times == ([], [])
    for _ in range(3):
        turns.add(0, 2.0)
    assert turns.way == 1
    assert turns.times == ([2.0, 2.0], [])
    assert turns.least is None


def growing(compiled: float, torch: float, passes: int) -> list[int]:
    """Return the calls that decide, of a cache that grows from 8 to 71 in each pass.

    A call takes longer for more tokens, and the first one of the first way much longer.
    Every fifth call is interrupted.
    """
    every = TurnsOfSizes()
    ways: dict[int, TurnsOfOneSize] = {}
    bound: set[int] = set()
    decided = []
    for number in range(64 * passes):
        size = 8 + number % 64
        turns = ways.setdefault(size, every.of((size,)))
        way = turns.way
        seconds = (compiled, torch)[way] * (1 + size / 100) + (number % 5 == 0)
        turns.add(way, seconds + 9 * (way == 0 and size not in bound))
        bound |= {size} if way == 0 else set()
        if turns.ratio is not None:
            decided.append(number)
            assert (turns.ratio < 1) == (compiled < torch)
    return decided


@pytest.mark.parametrize("seconds", [(1.0, 2.0), (2.0, 1.0)])
def test_sizes_that_differ_at_each_call_decide_together(
    seconds: tuple[float, float],
) -> None:
    assert growing(*seconds, passes=3), "each size has had three calls at most"


def test_sizes_whose_times_are_near_decide_by_themselves() -> None:
    assert not growing(1.0, 1.1, passes=3)
    assert growing(1.0, 1.1, passes=40)


def test_less_time_for_smaller_sizes_tells_nothing() -> None:
    every = TurnsOfSizes()
    for number in range(60):
        small, large = every.of((10,)), every.of((80,))
        way = small.way
        (small if way else large).add(way, 1.0 if way else 8.0 + number / 100)
    assert every.least is None
