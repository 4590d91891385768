"""Owns the choice of how the threads of a block share an iteration space."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from magweld.passes.tiling.thread_shares import (
    possible_counts,
    product_counts,
    window_counts,
)


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
    """Return `product_counts` as a layout."""
    return ThreadLayout(extents, product_counts(extents, operands, threads))


def window_layout(
    extents: tuple[int, ...],
    operands: Sequence[Collection[int]],
    threads: int,
    subgroup: int,
) -> ThreadLayout:
    """Return `window_counts` as a layout."""
    return ThreadLayout(extents, window_counts(extents, operands, threads, subgroup))


def merge_threads(extent: int, serial: int) -> int:
    """Return how many threads merge `extent` partial results of a reduction.

    Up to `serial` results one thread merges alone. Beyond, about as many threads as
    each then has results to merge: two rounds in place of one long one.
    """
    if extent <= serial:
        return 1
    return max(d for d in divisors(extent) if d * d <= extent)
