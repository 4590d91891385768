"""Owns the choice of how the threads of a block share an iteration space."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ThreadLayout:
    """How many threads work along each loop of an iteration space.

    Thread `t` of a loop takes iterations `t, t + threads, t + 2 * threads, ...`, so
    that neighbouring threads touch neighbouring elements.

    Attributes:
        extents: Trip count of each loop.
        threads: Threads along each loop; each divides its extent.

    Raises:
        ValueError: A thread count does not divide its extent.
    """

    extents: tuple[int, ...]
    threads: tuple[int, ...]

    def __post_init__(self) -> None:
        for extent, count in zip(self.extents, self.threads, strict=True):
            if extent % count:
                raise ValueError(f"{count} threads do not divide {extent} iterations")

    @property
    def per_thread(self) -> tuple[int, ...]:
        """Iterations of one thread along each loop."""
        pairs = zip(self.extents, self.threads, strict=True)
        return tuple(extent // count for extent, count in pairs)

    @property
    def total(self) -> int:
        """Threads that have work."""
        return math.prod(self.threads)

    def subgroups(self, lanes: int) -> int:
        """Return how many subgroups of so many threads have work."""
        return -(-self.total // lanes)


def divisors(number: int) -> list[int]:
    """Return the divisors of a positive number, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


@functools.lru_cache
def coalesced_layout(
    extents: tuple[int, ...], threads: int, subgroup: int
) -> ThreadLayout:
    """Return a layout for an operation that streams its operands.

    As many threads as possible work; among those, the innermost loop gets a count as
    near to a subgroup as possible, so that a subgroup reads one contiguous piece and
    a reduction along it stays within few subgroups.

    Args:
        extents: Trip counts, innermost loop last.
        threads: Threads of the block.
        subgroup: Threads that execute in lockstep (a warp or wavefront).
    """

    def rank(counts: tuple[int, ...]) -> tuple[float, ...]:
        innermost = counts[-1] if counts else 1
        distance = abs(math.log2(innermost / subgroup))
        return (-math.prod(counts), distance, *(-c for c in reversed(counts)))

    return ThreadLayout(extents, min(possible_counts(extents, threads), key=rank))


def balanced_layout(
    extents: tuple[int, ...], operands: Sequence[Collection[int]], threads: int
) -> ThreadLayout:
    """Return a layout for the output of a contraction.

    As many threads as possible work; among those, one thread reads the fewest elements
    in a step: its piece is as square as the divisors allow.

    Args:
        extents: Trip counts of the parallel loops, in the order of the output.
        operands: For each input, which of these loops it depends on, by position.
        threads: Threads of the block.
    """

    def rank(counts: tuple[int, ...]) -> tuple[float, ...]:
        tile = [e // c for e, c in zip(extents, counts, strict=True)]
        reads = _elements_read(tile, operands)
        return (-math.prod(counts), reads, *(-c for c in reversed(counts)))

    return ThreadLayout(extents, min(possible_counts(extents, threads), key=rank))


def _elements_read(tile: Sequence[int], operands: Sequence[Collection[int]]) -> int:
    """Return how many elements of its operands a piece of the output depends on."""
    return sum(math.prod(tile[i] for i in loops) for loops in operands)


def window_layout(
    extents: tuple[int, ...],
    operands: Sequence[Collection[int]],
    threads: int,
    subgroup: int,
) -> ThreadLayout:
    """Return a layout for the output of a convolution or pooling.

    As many threads as possible work; among those, one thread reads the fewest elements
    for one point of the window, and the innermost loop gets a count near a subgroup.

    Args:
        extents: Trip counts of the parallel loops, in the order of the output.
        operands: For each input, which of these loops it depends on, by position.
        threads: Threads of the block.
        subgroup: Threads that execute in lockstep.
    """

    def rank(counts: tuple[int, ...]) -> tuple[float, ...]:
        tile = [e // c for e, c in zip(extents, counts, strict=True)]
        reads = _elements_read(tile, operands)
        innermost = counts[-1] if counts else 1
        distance = abs(math.log2(innermost / subgroup))
        return (-math.prod(counts), reads, distance, *(-c for c in reversed(counts)))

    return ThreadLayout(extents, min(possible_counts(extents, threads), key=rank))


def merge_threads(extent: int, serial: int) -> int:
    """Return how many threads merge `extent` partial results of a reduction.

    Up to `serial` results one thread merges alone. Beyond, about as many threads as
    each then has results to merge: two rounds in place of one long one.
    """
    if extent <= serial:
        return 1
    return max(d for d in divisors(extent) if d * d <= extent)


def possible_counts(
    extents: tuple[int, ...], threads: int
) -> Iterator[tuple[int, ...]]:
    """Yield every way to put at most `threads` threads along the loops."""
    choices = [[d for d in divisors(e) if d <= threads] for e in extents]
    for counts in itertools.product(*choices):
        if math.prod(counts) <= threads:
            yield counts
