"""Owns bank conflicts in shared memory: what an access costs, and rows that avoid them.

Knows no MLIR.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BANKS = 32
_WORD = 4
# Words behind a row that are tried. Odd ones help who walks down a column; even ones
# who walks down several columns at once, or reads two or four words.
_WORDS = (1, 2, 4)


@dataclass(frozen=True)
class ThreadAccess:
    """How the threads of a loop access a buffer.

    Attributes:
        trips: Trip counts of the loop; threads are numbered row-major.
        moves: For each dimension of the buffer, how far each dimension of the loop
            moves in it.
        times: Elements that each thread accesses.
    """

    trips: tuple[int, ...]
    moves: tuple[tuple[int, ...], ...]
    times: int

    def positions(self, strides: Sequence[int], subgroup: int) -> Iterator[int]:
        """Yield where each thread of the first subgroup starts, in elements."""
        moved = list(zip(strides, self.moves, strict=True))
        loops = range(len(self.trips))
        along = [sum(stride * move[i] for stride, move in moved) for i in loops]
        threads = itertools.product(*map(range, self.trips))
        for thread in itertools.islice(threads, subgroup):
            yield sum(a * t for a, t in zip(along, thread, strict=True))

    def passes(self, strides: Sequence[int], element: int, subgroup: int) -> int:
        """Return the passes that a subgroup takes for its accesses.

        Args:
            strides: Of the buffer, in elements.
            element: Bytes of an element.
            subgroup: Threads that execute in lockstep.
        """
        at = [p * element // _WORD for p in self.positions(strides, subgroup)]
        total = 0
        for first in range(0, len(at), _BANKS):
            words = set(at[first : first + _BANKS])
            banks = [word % _BANKS for word in words]
            total += max(banks.count(bank) for bank in set(banks))
        return total * self.times


def row_padding(
    shape: Sequence[int], element: int, accesses: Sequence[ThreadAccess], subgroup: int
) -> int:
    """Return the elements behind each row with which accesses take the fewest passes.

    Of paddings that take as many, the smallest; 0 where none takes fewer.

    Args:
        shape: Of the buffer, rows innermost.
        element: Bytes of an element.
        accesses: All of the buffer.
        subgroup: Threads that execute in lockstep.
    """

    def passes(padding: int) -> int:
        strides = _strides(shape, padding)
        return sum(one.passes(strides, element, subgroup) for one in accesses)

    tried = {max(1, words * _WORD // element) for words in _WORDS}
    return min((0, *sorted(tried)), key=passes)


def _strides(shape: Sequence[int], padding: int) -> list[int]:
    *outer, row = shape
    extents = [*outer, row + padding]
    return [math.prod(extents[i + 1 :]) for i in range(len(extents))]
