"""Owns copies of interpreted GPU code that run beside it, in groups of each thread.

Written from the PTX ISA ("Data Movement and Conversion Instructions: cp.async"): bytes
arrive in shared memory at some time before the thread that copies has waited for their
group; other threads see them behind a barrier after that. Until then they are no
number, and who reads or writes them races. All threads of a block run in lockstep, so
that their groups have the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gpu_memory import (
    Block,
    Memory,
    note_read,
    note_write,
    place_of_neighbours,
)

from magweld.bindings import ir

# Elements of 4, 8 and 16 bytes; `bypassL1` wants 16.
_SIZES = (4, 8, 16)


@dataclass(frozen=True)
class Copy:
    """Bytes on their way.

    Attributes:
        memory: Where they go.
        where: Their bytes, one row a thread.
        data: The bytes, as they were when the copy began.
        threads: Which threads copy.
    """

    memory: Memory
    where: np.ndarray
    data: np.ndarray
    threads: np.ndarray

    def arrive(self, block: Block) -> None:
        """Let the bytes be what was copied, written by their threads just now."""
        self.memory.arriving[self.where] = False
        mask, block.mask = block.mask, self.threads
        note_write(self.memory, self.where, block)
        block.mask = mask
        self.memory.data[self.where] = self.data


class CopyGroups:
    """The copies of a block that have not arrived, by the group they are of."""

    def __init__(self) -> None:
        self.opened: list[Copy] = []
        self.closed: list[list[Copy]] = []

    def wait(self, left: int, block: Block) -> None:
        """Let all groups but the youngest `left` arrive."""
        while len(self.closed) > left:
            for copy in self.closed.pop(0):
                copy.arrive(block)

    def check_all_arrived(self) -> None:
        """Raise an error for copies that nobody has waited for."""
        assert not self.opened, "a block ends with copies that are of no group"
        assert not any(self.closed), "a block ends with copies that are on their way"


def _copy(op: Any, block: Block) -> None:
    size = ir.IntegerAttr(op.dstElements).value
    left = size if op.srcElements is None else block.values[op.srcElements]
    source, target = block.values[op.src], block.values[op.dst]
    assert source.dtype == target.dtype, "elements are copied as they are"
    assert size * source.dtype.itemsize in _SIZES, "cp.async has 4, 8 or 16 bytes"
    assert target.memory is block.shared, "cp.async writes shared memory"
    assert source.memory is not block.shared, "cp.async reads global memory"
    start = [block.values[i] for i in op.srcIndices]
    read = place_of_neighbours(source, start, size, block)
    start = [block.values[i] for i in op.dstIndices]
    written = place_of_neighbours(target, start, size, block)
    block.observe(False, source.memory, read)
    block.observe(True, target.memory, written)
    note_read(source.memory, read, block)
    note_write(target.memory, written, block)
    # What is not read of a piece arrives as zeros.
    data = source.memory.data[read].copy()
    some = np.broadcast_to(left, block.threads)[block.mask] * source.dtype.itemsize
    data[np.arange(data.shape[1]) >= some[:, None]] = 0
    target.memory.data[written] = 0xFF
    target.memory.arriving[written] = True
    block.copies.opened.append(Copy(target.memory, written, data, block.mask.copy()))


def _create_group(op: Any, block: Block) -> None:
    assert block.mask.all(), "a group that some threads do not make"
    block.copies.closed.append(block.copies.opened)
    block.copies.opened = []


def _wait(op: Any, block: Block) -> None:
    assert block.mask.all(), "a wait that some threads skip"
    block.copies.wait(ir.IntegerAttr(op.n).value, block)


HANDLERS = {
    "nvgpu.device_async_copy": _copy,
    "nvvm.cp.async.commit.group": _create_group,
    "nvvm.cp.async.wait.group": _wait,
}
