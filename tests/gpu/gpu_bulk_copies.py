"""Owns copies that the tensor memory accelerator of interpreted GPU code makes.

Written from the PTX ISA ("Data Movement and Conversion Instructions:
cp.async.bulk.tensor", "Tensors: swizzling modes", "mbarrier", "Async proxy"). Bytes
arrive in shared memory at some time before the phase of their mbarrier is over, and who
has waited for that sees them. Until then they are no number, and who reads or writes
them races. They arrive through the asynchronous proxy: what threads wrote there, and
the mbarrier that one has made, has to have been fenced before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu_memory import _NOBODY, Block, Memory, RaceError, note_read, note_write

from magweld.tensor_map import TensorMap

_BYTES = 8
_SIZES = {"f16": 2, "bf16": 2, "f32": 4}


@dataclass(frozen=True)
class MappedTensor:
    """A parameter that is a tensor map.

    Attributes:
        memory: The tensor.
        map: What is said of it.
    """

    memory: Memory
    map: TensorMap


@dataclass(frozen=True)
class _Arrival:
    """Bytes on their way.

    Attributes:
        where: Their places.
        data: What they are.
    """

    where: np.ndarray
    data: np.ndarray

    def arrive(self, shared: Memory) -> None:
        """Let the bytes be what was copied, for whoever has waited for them."""
        shared.arriving[self.where] = False
        shared.unfenced[self.where] = False
        shared.writer[self.where] = _NOBODY
        shared.data[self.where] = self.data


@dataclass
class MBarrier:
    """An mbarrier in shared memory.

    Attributes:
        where: Its bytes.
        count: Arrivals that end a phase.
        pending: How many of them are still to come.
        expected: Bytes that are still to come.
        phase: How many phases are over.
        copies: What is on its way and counted by it.
    """

    where: np.ndarray
    count: int
    pending: int
    expected: int = 0
    phase: int = 0
    copies: list[_Arrival] = field(default_factory=list)

    def end_phase(self) -> None:
        """Begin the next phase, if all of this one has arrived."""
        if self.pending == 0 and self.expected == 0:
            self.phase += 1
            self.pending = self.count

    def wait(self, parity: int, shared: Memory) -> None:
        """Let what is on its way arrive until a phase of this parity is over."""
        assert parity in (0, 1), "a parity"
        while self.phase % 2 == parity and self.copies:
            one = self.copies.pop(0)
            one.arrive(shared)
            self.expected -= one.where.size
            self.end_phase()
        assert self.phase % 2 != parity, "threads wait for what never arrives"


def check_all_arrived(barriers: dict[int, MBarrier]) -> None:
    """Raise an error for what is on its way when a block ends."""
    on_way = any(one.copies for one in barriers.values())
    assert not on_way, "a block ends with copies that are on their way"


def _one(value: Any, block: Block) -> int:
    """Return a number that all active threads have alike."""
    every = np.broadcast_to(value, block.threads)[block.mask]
    assert (every == every[0]).all(), "threads differ"
    return int(every[0])


def _alone(block: Block) -> None:
    assert block.mask.sum() == 1, "what one thread does, several do"


def _barrier(value: Any, block: Block) -> MBarrier:
    place = _one(value, block)
    assert place in block.barriers, "there is no mbarrier"
    found: MBarrier = block.barriers[place]
    note_read(block.shared, _rows(found.where, block), block)
    return found


def _rows(where: np.ndarray, block: Block) -> np.ndarray:
    return np.broadcast_to(where, (int(block.mask.sum()), where.size))


def _make(op: Any, block: Block) -> None:
    _alone(block)
    place = _one(block.values[op.addr], block)
    assert place % _BYTES == 0, "an mbarrier is aligned"
    assert place not in block.barriers, "an mbarrier is made twice"
    where = place + np.arange(_BYTES)
    assert where[-1] < block.shared.data.size, "an mbarrier lies in shared memory"
    note_write(block.shared, _rows(where, block), block)
    count = _one(block.values[op.count], block)
    block.barriers[place] = MBarrier(where, count, count)


def _give_up(op: Any, block: Block) -> None:
    _alone(block)
    found = _barrier(block.values[op.addr], block)
    assert not found.copies, "an mbarrier is given up that counts what is on its way"
    note_write(block.shared, _rows(found.where, block), block)
    del block.barriers[int(found.where[0])]


def _expect(op: Any, block: Block) -> None:
    _alone(block)
    found = _barrier(block.values[op.addr], block)
    assert found.pending > 0, "more arrivals than the phase of an mbarrier has"
    found.expected += _one(block.values[op.txcount], block)
    found.pending -= 1
    found.end_phase()


def _wait(op: Any, block: Block) -> None:
    assert block.mask.all(), "a wait that some threads skip"
    found = _barrier(block.values[op.addr], block)
    found.wait(_one(block.values[op.phase], block), block.shared)


def _copy(op: Any, block: Block) -> None:
    _alone(block)
    shared, mapped = block.shared, block.values[op.tmaDescriptor]
    assert isinstance(mapped, MappedTensor), "a copy without a tensor map"
    barrier = _barrier(block.values[op.mbar], block)
    if shared.unfenced[barrier.where].any():
        raise RaceError("a copy counts at an mbarrier that was made and not fenced")
    at = [_one(block.values[value], block) for value in op.coordinates]
    read, inside = _places_in_tensor(mapped, list(reversed(at)))
    # Each row of the box is read at once, as by a thread of its own.
    rows = read.reshape(-1, read.shape[-1])
    if block.observer is not None:
        full = inside.reshape(rows.shape).all(1)
        numbers = np.flatnonzero(full)
        block.observer(False, mapped.memory, numbers, rows[full, 0], rows.shape[1])
    flat, there = read.reshape(-1), inside.reshape(-1)
    note_read(mapped.memory, _rows(flat[there], block), block)
    data = np.where(there, mapped.memory.data[np.where(there, flat, 0)], 0)
    start = _one(block.values[op.dstMem], block)
    where = _places_in_shared(start, data.size, mapped.map.swizzle)
    if shared.unfenced[where].any():
        raise RaceError("a copy overwrites what threads wrote and did not fence")
    note_write(shared, _rows(where, block), block)
    shared.unfenced[where] = False
    shared.data[where] = 0xFF
    shared.arriving[where] = True
    barrier.copies.append(_Arrival(where, data.astype(np.uint8)))


def _places_in_tensor(
    mapped: MappedTensor, at: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of a box, and which of them are inside of the tensor."""
    one, size = mapped.map, _SIZES[mapped.map.element]
    strides = (*one.strides, size)
    places, inside = np.zeros(one.box, np.int64), np.ones(one.box, bool)
    for dimension, (first, extent) in enumerate(zip(at, one.extents, strict=True)):
        shape = [1] * len(one.box)
        shape[dimension] = -1
        index = (first + np.arange(one.box[dimension])).reshape(shape)
        places = places + index * strides[dimension]
        inside = inside & (index >= 0) & (index < extent)
    every = places[..., None] + np.arange(size)
    there = np.broadcast_to(inside[..., None], every.shape)
    flat = (*one.box[:-1], one.box[-1] * size)
    return every.reshape(flat), there.reshape(flat)


def _places_in_shared(start: int, size: int, swizzle: int) -> np.ndarray:
    """Return where the bytes of a box go, which are one row after another."""
    assert start % 128 == 0, "boxes begin at multiples of 128 bytes"
    where = start + np.arange(size)
    if swizzle:
        assert swizzle == 128
        assert start % 1024 == 0, "swizzled boxes begin at multiples of 1024 bytes"
        where = where ^ (where >> 7 & 7) << 4
    return where


def _same(op: Any, block: Block) -> None:
    block.values[op.results[0]] = block.values[op.operands[0]]


HANDLERS = {
    "llvm.inttoptr": _same,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _copy,
    "nvvm.mbarrier.arrive.expect_tx": _expect,
    "nvvm.mbarrier.init": _make,
    "nvvm.mbarrier.inval": _give_up,
    "nvvm.mbarrier.try_wait.parity": _wait,
}
