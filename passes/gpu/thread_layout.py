"""Owns the choice of how the threads of a block share an iteration space."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

# Bytes of what most threads access.
_WORD = 4
# Share of the work for which another layout is taken.
_WORTH = Fraction(9, 10)


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


@dataclass(frozen=True)
class Stream:
    """How the loops of an iteration space walk through an operand in global memory.

    Attributes:
        steps: Bytes from an iteration of each loop to the next one, 0 where it stays.
        width: Bytes that an iteration accesses, side by side.
        alignment: Bytes that divide where the first iteration begins; 0 for any.
    """

    steps: tuple[int, ...]
    width: int
    alignment: int = 0

    def along(self, loops: Sequence[int]) -> Stream:
        """Return the stream of some of the loops, in an order."""
        steps = tuple(self.steps[loop] for loop in loops)
        return replace(self, steps=steps)


@dataclass(frozen=True)
class Subgroup:
    """Threads that execute in lockstep (a warp or wavefront).

    Attributes:
        lanes: How many they are.
        sector: Bytes of a transaction of global memory.
    """

    lanes: int
    sector: int


def divisors(number: int) -> list[int]:
    """Return the divisors of a positive number, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


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

    return ThreadLayout(extents, min(_counts(extents, threads), key=rank))


def streaming_layout(
    extents: tuple[int, ...],
    threads: int,
    along: int,
    streams: Sequence[Stream],
    subgroup: Subgroup,
) -> ThreadLayout:
    """Return a layout whose threads lie side by side in the memory that they stream.

    That of `coalesced_layout` where its instructions touch no more sectors than the
    bytes of their threads fill. Where counts that divide the rows would have neighbours
    in many rows, a few threads less may have the elements of whole rows in their order:
    of layouts with at least half as many threads the one whose instructions take the
    least, if that is a tenth less. Each of them takes as long as the sectors that it
    touches, and as those of a full one, four bytes a thread.

    Args:
        extents: Trip counts, innermost loop last; threads are numbered row-major.
        threads: Threads of the block.
        along: Wanted count of the innermost loop.
        streams: Operands in global memory.
        subgroup: Which threads make one access.
    """
    found = coalesced_layout(extents, threads, along)
    if all(_excess(found, stream, subgroup) == 0 for stream in streams):
        return found

    def work(layout: ThreadLayout) -> Fraction:
        lanes = layout.subgroups(subgroup.lanes) * subgroup.lanes
        full = Fraction(lanes * _WORD, subgroup.sector) * len(streams)
        touched = sum(_touched(layout, stream, subgroup)[0] for stream in streams)
        return (full + touched) * math.prod(layout.per_thread)

    fitting = (ThreadLayout(extents, counts) for counts in _counts(extents, threads))
    many = (one for one in fitting if 2 * one.total >= found.total)
    best = min(many, key=work)
    return best if work(best) <= _WORTH * work(found) else found


def _excess(layout: ThreadLayout, stream: Stream, subgroup: Subgroup) -> Fraction:
    """Return the sectors that are touched beside those that the bytes fill."""
    touched, least = _touched(layout, stream, subgroup)
    return touched - least


def _touched(
    layout: ThreadLayout, stream: Stream, subgroup: Subgroup
) -> tuple[Fraction, int]:
    """Return the sectors that an iteration of all threads touches, and the least.

    The first is the mean of iterations, which begin at other places in a sector.
    """
    every = itertools.product(*map(range, layout.threads))
    first = [sum(map(operator.mul, stream.steps, thread)) for thread in every]
    lanes, sector = subgroup.lanes, subgroup.sector
    groups = [set(first[at : at + lanes]) for at in range(0, len(first), lanes)]
    shifts = [
        step * count
        for step, count, own in zip(
            stream.steps, layout.threads, layout.per_thread, strict=True
        )
        if own > 1
    ]
    starts = range(0, sector, math.gcd(sector, stream.alignment, *shifts))
    touched = sum(
        len({(start + at + end) // sector for at in group for end in _ends(stream)})
        for group in groups
        for start in starts
    )
    least = sum(-(-len(group) * stream.width // sector) for group in groups)
    return Fraction(touched, len(starts)), least


def _ends(stream: Stream) -> tuple[int, int]:
    return 0, stream.width - 1


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

    return ThreadLayout(extents, min(_counts(extents, threads), key=rank))


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

    return ThreadLayout(extents, min(_counts(extents, threads), key=rank))


def merge_threads(extent: int, serial: int) -> int:
    """Return how many threads merge `extent` partial results of a reduction.

    Up to `serial` results one thread merges alone. Beyond, about as many threads as
    each then has results to merge: two rounds in place of one long one.
    """
    if extent <= serial:
        return 1
    return max(d for d in divisors(extent) if d * d <= extent)


def _counts(extents: tuple[int, ...], threads: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put at most `threads` threads along the loops."""
    choices = [[d for d in divisors(e) if d <= threads] for e in extents]
    for counts in itertools.product(*choices):
        if math.prod(counts) <= threads:
            yield counts
