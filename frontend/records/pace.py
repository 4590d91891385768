"""Owns how often a program is recorded once many records of it have been made."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from magweld.frontend.records.cache import MAX_RECORDS
from magweld.frontend.records.record import Record

# Recordings of one cache that are made as soon as a call misses: as many as it keeps.
FREE: Final = MAX_RECORDS
# Recordings in a row that nobody has hit when the next one is made, before this one has
# to wait as well. Some may have given no record: the program has raised an exception.
FREE_IN_VAIN: Final = 10
# The time between later ones, in that of a recording: they take a twentieth of it.
_APART: Final = 20
# Hits after which a record has been worth its recording.
_WORTH: Final = 16
_LONGER: Final = 2


class RecordingPace:
    """Bounds the time that recordings take, for all caches of one traced callable.

    A recording takes a hundred times as long as a call and more. Where arguments keep
    changing in a way that no record covers, and calls in between are hits, there would
    be no end to them. So after some recordings a cache waits, for a multiple of what a
    recording takes. As long as the records that it makes then are hardly hit, each wait
    is twice as long as the one before: what recordings take becomes ever less of the
    time that passes. Where none of the first ones is hit, it waits sooner.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._next = 0.0
        self._factor = 1
        self._last: Record | None = None

    def allows(self, recorded: int, in_vain: int = 0) -> bool:
        """Return whether a cache may be recorded into now.

        Args:
            recorded: How many records it has had.
            in_vain: How many of its last recordings in a row have not been worth it.
        """
        is_free = recorded < FREE and in_vain < FREE_IN_VAIN
        return is_free or self._clock() >= self._next

    def note(self, seconds: float, record: Record | None, in_vain: int = 0) -> None:
        """Take note of a recording that has been made.

        Args:
            seconds: What it took.
            record: What it has given; its number tells how many there were before.
            in_vain: What `allows` takes, now.
        """
        if in_vain < FREE_IN_VAIN and (record is None or record.number < FREE):
            return
        last, self._last = self._last, record
        is_worth = last is not None and last.hits >= _WORTH
        self._factor = 1 if is_worth else self._factor * _LONGER
        self._next = self._clock() + _APART * self._factor * seconds
