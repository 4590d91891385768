"""Owns the comparison of two ways to run the same by as few timed calls as will do."""

from __future__ import annotations

import math
import statistics
from typing import Final

# Calls in a row that one way answers. The first of them is not counted: caches hold
# what the other way has used, which is not so when one way answers all calls.
_IN_A_ROW: Final = 3
# Counted calls of each way: so many at least, and so many at most.
_FEWEST: Final = 4
_MOST: Final = 6
# Calls after which the comparison has ended if the time of each was added.
CALLS: Final = 2 * _MOST // (_IN_A_ROW - 1) * _IN_A_ROW
# A comparison may cost so little of what the calls cost that pass until the next one,
# and each further one so much less: a machine may be busy for long.
_WORTH: Final = 20
_LONGER: Final = 4
# Median over least time of calls of a machine that does little else meanwhile, at most.
_CALM: Final = 1.5


class Turns:
    """Two ways to run the same, which answer calls in turn.

    Attributes:
        times: Seconds of the counted calls of each way.
        spent: Seconds of all calls of each way.
        is_disturbed: Whether it is known that the machine did something else meanwhile.
    """

    def __init__(self) -> None:
        self.is_disturbed = False
        self.times: tuple[list[float], list[float]] = ([], [])
        self.spent = [0.0, 0.0]
        self._calls = 0

    @property
    def way(self) -> int:
        """Which way answers the next call, 0 or 1: the same one until it is timed."""
        return self._calls // _IN_A_ROW % 2

    def add(self, way: int, seconds: float) -> None:
        """Add the time of a call.

        Args:
            way: What has answered it; a call that was begun in an earlier turn, as one
                of another thread may be, is not counted.
            seconds: Its time.
        """
        if way != self.way:
            return
        self.spent[way] += seconds
        if self._calls % _IN_A_ROW:
            self.times[way].append(seconds)
        self._calls += 1

    @property
    def least(self) -> tuple[float, float] | None:
        """Least counted time of each way; None if one has none yet."""
        first, second = self.times
        return (min(first), min(second)) if first and second else None

    @property
    def is_calm(self) -> bool:
        """Whether the times of each way are alike, as they are on an idle machine.

        On a busy one threads wait for each other and for a core, each way more or less
        than it would alone.
        """
        return not self.is_disturbed and all(
            bool(times) and statistics.median(times) <= _CALM * min(times)
            for times in self.times
        )

    @property
    def ratio(self) -> float | None:
        """Least time of the first way over that of the second; None if it is too early.

        It is known as soon as all times of one way are less than all of the other: if
        both take the same time, this happens by chance, and then does no harm. Times
        that overlap, as they do on a busy machine, are compared when there are enough.
        """
        first, second = self.times
        count = min(len(first), len(second))
        if count < _FEWEST:
            return None
        apart = min(first) > max(second) or min(second) > max(first)
        if not apart and count < _MOST:
            return None
        return min(first) / max(min(second), 1e-9)

    def calls_until_next(self, earlier: int, *, trusts: bool = True) -> int | None:
        """Return how many calls pass until the ways are compared once more.

        None if their times tell enough: those of a calm machine.

        Args:
            earlier: How many comparisons of them have not told enough either.
            trusts: Whether those of a calm machine do.
        """
        if self.least is None or (trusts and self.is_calm):
            return None
        slower = self.least.index(max(self.least))
        factor: int = _WORTH * _LONGER**earlier
        return math.ceil(factor * self.spent[slower] / max(min(self.least), 1e-9))
