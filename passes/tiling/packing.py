"""Owns the placing of buffers with known lifetimes in one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magweld.passes.tiling.best_fit import BestFit


@dataclass(frozen=True)
class Buffer:
    """A buffer that steps use.

    Attributes:
        size: Bytes.
        first: Number of the first step that uses it.
        last: Number of the last one.
    """

    size: int
    first: int
    last: int

    def meets(self, other: Buffer) -> bool:
        """Whether both are in use at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Packing:
    """Where buffers lie.

    Attributes:
        offsets: Of each buffer, in bytes.
        size: Bytes of the memory.
    """

    offsets: tuple[int, ...]
    size: int


def pack(buffers: Sequence[Buffer], alignment: int) -> Packing:
    """Return places for buffers.

    Best fit in the order of time, as Welder does (section 5.1), or the largest first
    where that takes less.
    """
    in_time = _in_order_of_time(buffers, alignment)
    by_size = _largest_first(buffers, alignment)
    return by_size if by_size.size < in_time.size else in_time


def slots_of(buffers: Sequence[Buffer]) -> tuple[int, ...]:
    """Return for each buffer the number of its slot: those of one slot never meet.

    The largest come first, each to the smallest slot that is free meanwhile.
    """
    slots: list[list[int]] = []
    numbers = [0] * len(buffers)
    for number in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, i)):
        free = [
            slot
            for slot, held in enumerate(slots)
            if not any(buffers[i].meets(buffers[number]) for i in held)
        ]
        # A slot is as large as its first buffer: later slots are smaller.
        if not free:
            slots.append([])
        numbers[number] = free[-1] if free else len(slots) - 1
        slots[numbers[number]].append(number)
    return tuple(numbers)


def _in_order_of_time(buffers: Sequence[Buffer], alignment: int) -> Packing:
    memory = BestFit(alignment)
    offsets = [0] * len(buffers)
    live: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        for ended in [i for i in live if buffers[i].last < buffers[number].first]:
            memory.release(offsets[ended])
            live.remove(ended)
        offsets[number] = memory.allocate(buffers[number].size)
        live.append(number)
    return Packing(tuple(offsets), memory.high_water)


def _largest_first(buffers: Sequence[Buffer], alignment: int) -> Packing:
    """Give each the lowest place that no buffer placed before takes meanwhile."""
    sizes = [max(1, -(-b.size // alignment)) * alignment for b in buffers]
    offsets = [0] * len(buffers)
    placed: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda i: (-sizes[i], i)):
        taken = sorted(
            (offsets[i], offsets[i] + sizes[i])
            for i in placed
            if buffers[i].meets(buffers[number])
        )
        at = 0
        for start, end in taken:
            if start - at >= sizes[number]:
                break
            at = max(at, end)
        offsets[number] = at
        placed.append(number)
    ends = (offset + size for offset, size in zip(offsets, sizes, strict=True))
    return Packing(tuple(offsets), max(ends, default=0))
