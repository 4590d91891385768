"""Two ways to run the same are compared by few timed calls, more where they overlap."""

from __future__ import annotations

import pytest

from magweld.comparison import CALLS, Turns


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


@pytest.mark.parametrize(
    ("first", "second", "calm"),
    [
        ([1.0, 1.1, 9.0, 1.2], [2.0, 2.9, 2.0, 2.0], True),  # one call was interrupted
        ([1.0, 1.1, 1.0, 1.2], [2.0, 34.0, 41.0, 30.0], False),
        ([1.0, 2.0, 2.0, 3.0], [2.0, 2.0, 2.0, 2.0], False),
        ([1.0, 1.0], [], False),
    ],
)
def test_times_of_a_busy_machine_differ(
    first: list[float], second: list[float], calm: bool
) -> None:
    turns = Turns()
    turns.times[0].extend(first)
    turns.times[1].extend(second)
    assert turns.is_calm == calm


def test_times_of_a_busy_machine_are_followed_by_another_comparison() -> None:
    turns = Turns()
    assert turns.calls_until_next(0) is None
    for seconds in ([1.0, 2.0, 3.0], [8.0, 1.0, 4.0]):
        for one in seconds:
            turns.add(turns.way, one)
    # The first way is slower and has taken six seconds, the other one takes one a call.
    assert turns.least == (2.0, 1.0)
    assert turns.calls_until_next(0) == 20 * 6.0
    assert turns.calls_until_next(1) == 4 * 20 * 6.0
    calm = Turns()
    for _ in range(2):
        for seconds in ([5.0, 1.0, 1.0], [7.0, 2.0, 2.0]):
            for one in seconds:
                calm.add(calm.way, one)
    assert calm.calls_until_next(0) is None
