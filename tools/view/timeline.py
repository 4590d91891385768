"""Owns the course of one call, as the profiler of torch saw it, in order of start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """Something that ran in a call.

    Attributes:
        name: Of a kernel, a library call, what torch runs, or of the call.
        start: Seconds behind the start of the call.
        seconds: How long it ran.
    """

    name: str
    start: float
    seconds: float


def course(ranges: Iterable[tuple[str, float, float]]) -> list[Ran]:
    """Return ranges in the order of their start, those around others first.

    Args:
        ranges: Name, start and end of each, in microseconds.
    """
    ordered = sorted(ranges, key=lambda one: (one[1], -one[2]))
    begin = ordered[0][1] if ordered else 0.0
    return [
        Ran(name, (start - begin) * 1e-6, (end - start) * 1e-6)
        for name, start, end in ordered
    ]
