"""Owns the choice of how threads share what they stream: few sectors, few accesses."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from magweld.passes.gpu.thread_layout import ThreadLayout, coalesced_layout
from magweld.passes.tiling.thread_shares import possible_counts

# Bytes of what most threads access.
_WORD = 4
# Share of the work for which another layout is taken.
_WORTH = Fraction(9, 10)
# Multiples of it have divisors of all sizes.
_WHOLE = 16


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
    return _streaming_layout(extents, threads, along, tuple(streams), subgroup)


@functools.lru_cache
def _streaming_layout(
    extents: tuple[int, ...],
    threads: int,
    along: int,
    streams: tuple[Stream, ...],
    subgroup: Subgroup,
) -> ThreadLayout:
    found = coalesced_layout(extents, threads, along)
    if all(_excess(found, stream, subgroup) == 0 for stream in streams):
        return found

    def work(layout: ThreadLayout) -> Fraction:
        return _work(layout, streams, subgroup)

    fitting = (
        ThreadLayout(extents, counts) for counts in possible_counts(extents, threads)
    )
    many = (one for one in fitting if 2 * one.total >= found.total)
    best = min(many, key=work)
    return best if work(best) <= _WORTH * work(found) else found


def rest_loop(
    extents: tuple[int, ...],
    threads: int,
    along: int,
    streams: Sequence[Stream],
    subgroup: Subgroup,
) -> int | None:
    """Return the loop of which the last iterations should be shared apart.

    Counts that divide a prime number of rows are that number or one: neighbouring
    threads are in different rows then, or few have work. Of 197 rows 192 are shared
    well, and so are 5.
    None where that is no tenth less work than `streaming_layout` of all has; arguments
    are those of this.
    """

    def work(parts: tuple[int, ...]) -> Fraction:
        layout = streaming_layout(parts, threads, along, streams, subgroup)
        return _work(layout, streams, subgroup)

    if not streams:
        return None
    found = streaming_layout(extents, threads, along, streams, subgroup)
    is_busy = 2 * found.total >= min(threads, math.prod(extents))
    if is_busy and all(_excess(found, one, subgroup) == 0 for one in streams):
        return None
    best, least = None, _WORTH * _work(found, streams, subgroup)
    for loop, extent in enumerate(extents):
        whole = whole_iterations(extent)
        if whole in (0, extent):
            continue
        parts = (
            (*extents[:loop], count, *extents[loop + 1 :])
            for count in (whole, extent - whole)
        )
        both = sum(map(work, parts), Fraction())
        if both <= least:
            best, least = loop, both
    return best


def whole_iterations(extent: int) -> int:
    """Return how many of the iterations of a loop many counts of threads divide."""
    return extent // _WHOLE * _WHOLE


def _work(
    layout: ThreadLayout, streams: Sequence[Stream], subgroup: Subgroup
) -> Fraction:
    """Return what accesses take: sectors of each, and as much as a full one has."""
    lanes = layout.subgroups(subgroup.lanes) * subgroup.lanes
    full = Fraction(lanes * _WORD, subgroup.sector) * len(streams)
    touched = sum(_touched(layout, stream, subgroup)[0] for stream in streams)
    return (full + touched) * math.prod(layout.per_thread)


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
