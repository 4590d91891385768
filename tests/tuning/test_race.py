"""The race of calls, with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magweld.runtime.race import (
    FIRST_ROUNDS,
    LEAST_GAIN,
    MOST_ROUNDS,
    Least,
    race,
    winner,
)


class Clock:
    """Time that passes in calls only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.counts: dict[str, int] = {}

    def __call__(self) -> float:
        return self.now

    def call(self, name: str, *seconds: float) -> Callable[[], None]:
        """A call that takes the given times in turn, the last one ever after."""

        def run() -> None:
            turn = self.counts.get(name, 0)
            self.counts[name] = turn + 1
            self.now += seconds[min(turn, len(seconds) - 1)]

        return run


def test_least_times_of_even_and_odd_rounds() -> None:
    clock = Clock()
    # The first time is that of the call before the race.
    times = race([clock.call("a", 9.0, 3.0, 5.0, 2.0, 4.0)], 0.0, clock)
    assert times == [Least(2.0, 4.0)]
    assert (times[0].seconds, times[0].noise) == (2.0, 2.0)


def test_ends_when_the_time_is_over() -> None:
    clock = Clock()
    race([clock.call("a", 1.0), clock.call("b", 1.0)], 20.0, clock)
    assert FIRST_ROUNDS + 1 < clock.counts["a"] < MOST_ROUNDS
    assert clock.counts["a"] == clock.counts["b"]


def test_ends_after_the_most_rounds() -> None:
    clock = Clock()
    race([clock.call("a", 1e-6)], 1e6, clock)
    assert clock.counts["a"] == MOST_ROUNDS + 1


def test_the_hopeless_drop_out_but_never_the_first() -> None:
    clock = Clock()
    calls = [clock.call("first", 5.0), clock.call("b", 1.0), clock.call("c", 2.0)]
    race(calls, 1e6, clock)
    assert clock.counts == {
        "first": MOST_ROUNDS + 1,
        "b": MOST_ROUNDS + 1,
        "c": FIRST_ROUNDS + 1,
    }


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([Least(1.0, 1.0), Least(0.5, 0.5)], 1, id="faster"),
        pytest.param([Least(1.0, 1.0), Least(2.0, 2.0)], 0, id="slower"),
        pytest.param([Least(1.0, 1.0), None, Least(0.5, 0.6)], 2, id="one is out"),
        pytest.param([Least(1.0, 1.6), Least(0.5, 0.5)], None, id="noise of the first"),
        pytest.param([Least(1.0, 1.0), Least(0.8, 1.1)], None, id="noise of the best"),
        pytest.param(
            [Least(1.0, 1.0), Least(1.0 - LEAST_GAIN / 2, 2.0)],
            0,
            id="gains too little",
        ),
    ],
)
def test_winner(times: list[Least | None], expected: int | None) -> None:
    assert winner(times) == expected
