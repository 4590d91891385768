"""Owns the best-fit allocator of offsets in one memory (Welder, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _Block:
    start: int
    size: int
    free: bool


def aligned_size(size: int, alignment: int) -> int:
    """Return the bytes that a buffer takes: whole units, at least one."""
    return max(1, -(-size // alignment)) * alignment


class BestFit:
    """Gives offsets to buffers whose lifetimes are known by the order of calls.

    The smallest free block that is large enough is taken; a free block at the end
    grows before a new one is added, so `high_water` is the size of the memory.
    """

    def __init__(self, alignment: int) -> None:
        """Make an empty memory whose offsets are multiples of `alignment` bytes."""
        self._alignment = alignment
        self._blocks: list[_Block] = []
        self._size = 0

    @property
    def high_water(self) -> int:
        """Bytes that the memory must hold."""
        return self._size

    def allocate(self, size: int) -> int:
        """Return the offset of a new buffer of `size` bytes (at least one unit)."""
        size = aligned_size(size, self._alignment)
        fitting = [b for b in self._blocks if b.free and b.size >= size]
        if fitting:
            return self._take(min(fitting, key=lambda b: b.size), size)
        if self._blocks and self._blocks[-1].free:
            last = self._blocks[-1]
            self._size += size - last.size
            last.size, last.free = size, False
            return last.start
        block = _Block(self._size, size, free=False)
        self._size += size
        self._blocks.append(block)
        return block.start

    def release(self, offset: int) -> None:
        """Free the buffer at `offset`.

        Raises:
            ValueError: No buffer in use starts there.
        """
        for position, block in enumerate(self._blocks):
            if block.start == offset and not block.free:
                block.free = True
                self._merge(position)
                return
        raise ValueError(f"no buffer in use at offset {offset}")

    def _take(self, block: _Block, size: int) -> int:
        rest = block.size - size
        block.size, block.free = size, False
        if rest:
            position = self._blocks.index(block) + 1
            self._blocks.insert(position, _Block(block.start + size, rest, free=True))
        return block.start

    def _merge(self, position: int) -> None:
        first = position
        while first > 0 and self._blocks[first - 1].free:
            first -= 1
        last = position
        while last + 1 < len(self._blocks) and self._blocks[last + 1].free:
            last += 1
        merged = self._blocks[first : last + 1]
        whole = _Block(merged[0].start, sum(b.size for b in merged), free=True)
        self._blocks[first : last + 1] = [whole]
