"""Owns bank conflicts in shared memory: what an access costs, and rows that avoid them.

Knows no MLIR.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BANKS = 32
_WORD = 4
_PASS_BYTES = BANKS * _WORD
# Words behind a row that are tried. Odd ones help who walks down a column by words,
# even ones who walks down several columns at once, or by accesses of two or four words.
_WORDS = (1, 2, 4)


@dataclass(frozen=True)
class ThreadAccess:
    """How the threads of a loop access a buffer.

    Attributes:
        trips: Trip counts of the loop; threads are numbered row-major.
        moves: For each dimension of the buffer, how far each dimension of the loop
            moves in it.
        times: Elements that each thread accesses.
        width: Neighbours along a row that it accesses at once, where they are aligned.
        lanes: Iterations of the threads of a subgroup, where these are not numbered
            row-major.
        is_whole: Whether the neighbours are one access or none: rows stay aligned to
            them.
    """

    trips: tuple[int, ...]
    moves: tuple[tuple[int, ...], ...]
    times: int
    width: int = 1
    lanes: tuple[tuple[int, ...], ...] = ()
    is_whole: bool = False

    def positions(self, strides: Sequence[int], subgroup: int) -> Iterator[int]:
        """Yield where each thread of the first subgroup starts, in elements."""
        moved = list(zip(strides, self.moves, strict=True))
        threads = self.lanes or tuple(
            itertools.islice(itertools.product(*map(range, self.trips)), subgroup)
        )
        loops = range(len(threads[0]))
        along = [sum(stride * move[i] for stride, move in moved) for i in loops]
        for thread in threads:
            yield sum(a * t for a, t in zip(along, thread, strict=True))

    def subgroups(self, subgroup: int) -> int:
        """Return how many subgroups of so many threads the loop has."""
        return -(-math.prod(self.trips) // subgroup)

    def accesses(self, strides: Sequence[int]) -> int:
        """Return the accesses of each thread."""
        return self.times // self._width(strides)

    def passes(self, strides: Sequence[int], element: int, subgroup: int) -> int:
        """Return the passes that the first subgroup takes for its accesses.

        As many threads at a time as move 128 bytes take one pass if no two of them want
        different words of a bank.

        Args:
            strides: Of the buffer, in elements.
            element: Bytes of an element.
            subgroup: Threads that execute in lockstep.
        """
        size = element * self._width(strides)
        at_once = _PASS_BYTES // max(size, _WORD)
        first = [p * element for p in self.positions(strides, subgroup)]
        total = 0
        for start in range(0, len(first), at_once):
            words = {
                byte // _WORD
                for at in first[start : start + at_once]
                for byte in range(at, at + size, min(size, _WORD))
            }
            banks = Counter(word % BANKS for word in words)
            total += max(banks.values())
        return total * self.accesses(strides)

    def _width(self, strides: Sequence[int]) -> int:
        """Return how many elements are accessed at once where rows lie so far apart."""
        return math.gcd(self.width, *strides[:-1])


def row_padding(
    shape: Sequence[int], element: int, accesses: Sequence[ThreadAccess], subgroup: int
) -> int:
    """Return the elements behind each row with which accesses take the fewest passes.

    Of paddings that take as many, those with the fewest accesses, and of these the
    smallest; 0 where none takes fewer.

    Args:
        shape: Of the buffer, rows innermost.
        element: Bytes of an element.
        accesses: All of the buffer.
        subgroup: Threads that execute in lockstep.
    """

    def cost(padding: int) -> tuple[int, int]:
        strides = _strides(shape, padding)
        passes = done = 0
        for one in accesses:
            subgroups = one.subgroups(subgroup)
            passes += subgroups * one.passes(strides, element, subgroup)
            done += subgroups * one.accesses(strides)
        return passes, done

    aligned = math.lcm(*(one.width for one in accesses if one.is_whole))
    words = {max(1, words * _WORD // element) for words in _WORDS}
    tried = {padding for padding in words if padding % aligned == 0}
    return min((0, *sorted(tried)), key=cost)


def _strides(shape: Sequence[int], padding: int) -> list[int]:
    *outer, row = shape
    extents = [*outer, row + padding]
    return [math.prod(extents[i + 1 :]) for i in range(len(extents))]
