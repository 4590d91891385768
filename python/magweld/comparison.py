"""Owns the comparison of two ways to run the same by as few timed calls as will do."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

# Calls in a row that one way answers. The first of them is not counted: caches hold
# what the other way has used, which is not so when one way answers all calls.
_IN_A_ROW: Final = 3
# Counted calls of each way: so many at least, and so many at most.
_FEWEST: Final = 4
_MOST: Final = 6
# Calls after which the comparison has ended if the time of each was added.
CALLS: Final = 2 * _MOST // (_IN_A_ROW - 1) * _IN_A_ROW


# Ratio of times that tells of other sizes as well.
CLEAR: Final = 1.25
# Latest times of each way that are kept for all sizes, and how many of the other way
# have to be longer: one may have been interrupted.
_KEPT: Final = 16
_COMPARED: Final = 3


Sizes = tuple[int, ...]


class Comparison(Protocol):
    """Two ways to run the same that are being compared."""

    @property
    def way(self) -> int:
        """Which way answers the next call, 0 or 1."""

    def add(self, way: int, seconds: float) -> None:
        """Add the time of a call."""

    @property
    def least(self) -> tuple[float, float] | None:
        """Times of the ways that stand for all of theirs; None if one has none yet."""

    @property
    def ratio(self) -> float | None:
        """Time of the first way over that of the second; None if it is too early."""


class Turns:
    """Two ways to run the same, which answer calls in turn.

    Attributes:
        times: Seconds of the counted calls of each way.
    """

    def __init__(self) -> None:
        self.times: tuple[list[float], list[float]] = ([], [])
        self._calls = 0

    @property
    def way(self) -> int:
        """Which way answers the next call, 0 or 1: the same one until it is timed."""
        return self._calls // _IN_A_ROW % 2

    @property
    def begins(self) -> bool:
        """Whether the next call is the first one in a row, which is not counted."""
        return not self._calls % _IN_A_ROW

    def add(self, way: int, seconds: float) -> None:
        """Add the time of a call.

        Args:
            way: What has answered it; a call that was begun in an earlier turn, as one
                of another thread may be, is not counted.
            seconds: Its time.
        """
        if way != self.way:
            return
        if not self.begins:
            self.times[way].append(seconds)
        self._calls += 1

    @property
    def least(self) -> tuple[float, float] | None:
        """Least counted time of each way; None if one has none yet."""
        first, second = self.times
        return (min(first), min(second)) if first and second else None

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


@dataclass(frozen=True)
class TurnsOfSizes:
    """Two ways to run one graph for many sizes, which answer its calls in turn.

    A cache that grows has other sizes at each call, and calls of each would be compared
    for long. Problems that are no smaller take no less time: a way that takes clearly
    less time for sizes that are no smaller than those of the other way is faster.

    Attributes:
        turns: Whose turn it is, over the calls of all sizes.
        times: Sizes and seconds of the latest counted calls of each way.
    """

    turns: Turns = field(default_factory=Turns)
    times: tuple[deque[tuple[Sizes, float]], deque[tuple[Sizes, float]]] = field(
        default_factory=lambda: (deque(maxlen=_KEPT), deque(maxlen=_KEPT))
    )

    def add(self, way: int, sizes: Sizes, seconds: float, *, counts: bool) -> bool:
        """Add the time of a call; return whether it is counted.

        Args:
            way: What has answered it, see `Turns.add`.
            sizes: Of the call.
            seconds: Its time.
            counts: Whether it tells anything: not where it has bound code first.
        """
        is_counted = counts and way == self.turns.way and not self.turns.begins
        self.turns.add(way, seconds)
        if is_counted:
            self.times[way].append((sizes, seconds))
        return is_counted

    @property
    def least(self) -> tuple[float, float] | None:
        """Times of two calls that tell of all; None if calls do not agree, or few.

        Of all calls of the faster way that tell so it is the one that tells least.
        """
        first, second = self.times
        ours, theirs = list(_clear(first, second)), list(_clear(second, first))
        if len(ours) >= _FEWEST and not theirs:
            return max(ours, key=lambda pair: pair[0] / pair[1])
        if len(theirs) >= _FEWEST and not ours:
            found = max(theirs, key=lambda pair: pair[0] / pair[1])
            return found[1], found[0]
        return None

    def of(self, sizes: Sizes) -> TurnsOfOneSize:
        """Return the comparison for some sizes."""
        return TurnsOfOneSize(self, sizes)


class TurnsOfOneSize:
    """Two ways to run a graph for some sizes, compared with those for other sizes.

    Args:
        every: Those for all sizes.
        sizes: The sizes.
    """

    def __init__(self, every: TurnsOfSizes, sizes: Sizes) -> None:
        self._every = every
        self._sizes = sizes
        self._alone = Turns()
        self._bound = False

    @property
    def way(self) -> int:
        """Which way answers the next call, whatever its sizes."""
        return self._every.turns.way

    def add(self, way: int, seconds: float) -> None:
        """Add the time of a call, see `Turns.add`."""
        counts = self._bound or way == 1
        self._bound |= way == 0
        if self._every.add(way, self._sizes, seconds, counts=counts):
            self._alone.times[way].append(seconds)

    @property
    def least(self) -> tuple[float, float] | None:
        """Least times of these sizes if they decide, else what tells of all sizes."""
        return self._every.least if self._alone.ratio is None else self._alone.least

    @property
    def ratio(self) -> float | None:
        """The same as ratio, as `Turns.ratio` has it."""
        least = self.least
        return None if least is None else least[0] / max(least[1], 1e-9)


def _clear(
    times: deque[tuple[Sizes, float]], others: deque[tuple[Sizes, float]]
) -> Iterator[tuple[float, float]]:
    """Yield seconds of one way, and more of the other way for sizes no larger."""
    for sizes, seconds in list(times):
        smaller = [
            theirs
            for other, theirs in list(others)
            if all(n <= size for n, size in zip(other, sizes, strict=True))
        ]
        if len(smaller) >= _COMPARED and seconds * CLEAR < min(smaller):
            yield seconds, min(smaller)
