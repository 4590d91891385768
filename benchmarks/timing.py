"""How the benchmarks take times: peers in turns, so that noise hits all alike.

A call is timed right after an untimed one of the same peer, so that caches and pages
are its own and not those of the peer before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Times:
    """Times of one peer in milliseconds."""

    median_ms: float
    min_ms: float

    def as_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_again(call: Callable[[], Any]) -> float:
    """Return the seconds of a call that comes right after an untimed one."""
    call()
    return seconds_of(call)


def interleaved(
    calls: dict[str, Callable[[], Any]], rounds: int, warm_up: int = 2
) -> dict[str, Times]:
    """Time all calls in turns, each after an untimed one of its own.

    Args:
        calls: What to time, by name.
        rounds: How often each is timed.
        warm_up: Calls of each before that, not timed.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(warm_up + rounds):
        for name, call in calls.items():
            seconds = seconds_again(call)
            if turn >= warm_up:
                times[name].append(seconds * 1e3)
    return {name: Times(statistics.median(t), min(t)) for name, t in times.items()}
