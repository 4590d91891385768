"""Owns the comparison of calls by time: in turns, least times, when to believe them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# After so many rounds a call that is slower than the best by `HOPELESS` drops out.
FIRST_ROUNDS = 4
HOPELESS = 1.3
MOST_ROUNDS = 40
# What is gained by less is not worth another plan than the model's.
LEAST_GAIN = 0.02

Clock = Callable[[], float]


@dataclass(frozen=True)
class Least:
    """Least seconds of a call in the even and in the odd rounds.

    Two numbers for one thing: how far they are apart tells the noise.
    """

    even: float
    odd: float

    @property
    def seconds(self) -> float:
        """Least seconds of all rounds."""
        return min(self.even, self.odd)

    @property
    def noise(self) -> float:
        """Seconds by which a repetition differed."""
        return abs(self.even - self.odd)


def race(
    calls: Sequence[Callable[[], Any]],
    seconds: float,
    clock: Clock = time.perf_counter,
) -> list[Least]:
    """Time calls in turns; the first one never drops out.

    Args:
        calls: What to time; each is called once before.
        seconds: Time after which no further round begins, but for the first ones.
        clock: Where the time comes from.
    """
    start = clock()
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    running = list(range(len(calls)))
    for turn in range(MOST_ROUNDS):
        if turn >= FIRST_ROUNDS and clock() - start > seconds:
            break
        for number in running:
            begin = clock()
            calls[number]()
            times[number].append(clock() - begin)
        if turn + 1 >= FIRST_ROUNDS:
            best = min(min(t) for t in times)
            running = [i for i in running if not i or min(times[i]) <= best * HOPELESS]
    return [Least(min(t[0::2]), min(t[1::2])) for t in times]


def winner(times: Sequence[Least | None]) -> int | None:
    """Return which call to take: the fastest, or the first if that gains too little.

    Args:
        times: Of each call, the first one known; None of one that cannot be taken.

    Returns:
        None if one seems faster than the first by less than the noise.
    """
    first, *_ = times
    assert first is not None, "it is what the others are compared with"
    known = [(t.seconds, i) for i, t in enumerate(times) if t is not None]
    seconds, number = min(known)
    best = times[number]
    assert best is not None, "it was among those that are known"
    gap = first.seconds - seconds
    if gap <= first.seconds * LEAST_GAIN:
        return 0
    return number if gap > max(first.noise, best.noise) else None
