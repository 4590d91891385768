"""Owns the memory of interpreted GPU code: who touched which byte, and races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from magweld.bindings import ir

_NOBODY, _SEVERAL = -1, -2


class RaceError(AssertionError):
    """Two threads touch the same byte without a barrier between them, one writing."""


class Memory:
    """Bytes that threads share, with who touched them when."""

    def __init__(self, data: np.ndarray, name: str) -> None:
        self.data = data
        self.name = name
        self.writer = np.full(data.size, _NOBODY, np.int64)
        self.written_at = np.zeros(data.size, np.int64)
        self.reader = np.full(data.size, _NOBODY, np.int64)
        self.reader_block = np.full(data.size, _NOBODY, np.int64)
        self.read_at = np.zeros(data.size, np.int64)
        # Bytes that a copy is on its way to.
        self.arriving = np.zeros(data.size, bool)
        # Bytes that were written and not fenced; how many products are reading them.
        self.unfenced = np.zeros(data.size, bool)
        self.used = np.zeros(data.size, np.int64)


@dataclass(frozen=True)
class View:
    """A memref: where its elements lie in a memory.

    `offset` is in elements, one number or one a thread.
    """

    memory: Memory | np.ndarray  # an array is private: one row a thread
    dtype: np.dtype
    offset: Any
    strides: tuple[int, ...]
    shape: tuple[int, ...]


# Told of each access: if it writes, the memory, the threads, their addresses, bytes.
Observer = Callable[[bool, Memory, np.ndarray, np.ndarray, int], None]


# The operations of each block of a region, by the operation around it, as the
# interpreter runs them.
Code = dict[Any, list[tuple[Callable[..., Any], Any, Any]]]


@dataclass
class Block:
    """The state of one block of threads."""

    number: int
    threads: int
    epoch: int
    values: dict[Any, Any]
    mask: np.ndarray
    shared: Memory
    copies: Any  # those on their way, see gpu_async_copies.py
    code: Code
    warpgroups: Any  # their products, see gpu_warpgroups.py
    observer: Observer | None = None
    # Those that are made, by their place, see gpu_bulk_copies.py.
    barriers: dict[int, Any] = field(default_factory=dict)

    def observe(self, is_store: bool, memory: Memory, where: np.ndarray) -> None:
        """Tell the observer of the bytes that the active threads access."""
        if self.observer is not None:
            threads = np.flatnonzero(self.mask)
            self.observer(is_store, memory, threads, where[:, 0], where.shape[1])

    @property
    def identities(self) -> np.ndarray:
        return self.number * self.threads + np.arange(self.threads)


def dtype_of(type_: ir.Type) -> np.dtype:
    """Return numpy's type; bf16, which it has not, is kept as its bits."""
    names = {"f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8"}
    names |= {"index": "i8", "i1": "?"}
    text = str(type_)
    return np.dtype(names.get(text) or f"i{ir.IntegerType(type_).width // 8}")


def whole_view(type_: ir.Type, memory: Any, offset: Any = 0) -> View:
    kind = ir.MemRefType(type_)
    strides, _ = kind.get_strides_and_offset()
    dtype = dtype_of(kind.element_type)
    return View(memory, dtype, offset, tuple(strides), tuple(kind.shape))


def _bytes_of(view: View, indices: list[Any], block: Block) -> np.ndarray:
    position = np.broadcast_to(np.asarray(view.offset), block.threads).astype(np.int64)
    for index, stride, size in zip(indices, view.strides, view.shape, strict=True):
        index = np.broadcast_to(index, block.threads)
        inside = (index >= 0) & (index < size)
        assert inside[block.mask].all(), f"index out of bounds of {view.shape}"
        position = position + index * stride
    first = position * view.dtype.itemsize
    return first[:, None] + np.arange(view.dtype.itemsize)


def load(op: Any, block: Block) -> None:
    view: View = block.values[op.memref]
    where = _bytes_of(view, [block.values[i] for i in op.indices], block)[block.mask]
    result = np.zeros(block.threads, view.dtype)
    if isinstance(view.memory, np.ndarray):
        rows = np.arange(block.threads)[block.mask][:, None]
        raw = view.memory[rows, where]
    else:
        block.observe(False, view.memory, where)
        note_read(view.memory, where, block)
        raw = view.memory.data[where]
    result[block.mask] = np.ascontiguousarray(raw).view(view.dtype)[:, 0]
    block.values[op.result] = result


def load_neighbours(
    memref: ir.Value, indices: list[Any], width: int, block: Block
) -> np.ndarray:
    """Load elements that lie side by side, aligned to all of them."""
    view: View = block.values[memref]
    where = place_of_neighbours(view, indices, width, block)
    block.observe(False, view.memory, where)
    note_read(view.memory, where, block)
    result = np.zeros((block.threads, width), view.dtype)
    result[block.mask] = np.ascontiguousarray(view.memory.data[where]).view(view.dtype)
    return result


def store_neighbours(
    values: np.ndarray, memref: ir.Value, indices: list[Any], block: Block
) -> None:
    """Store elements side by side; `values` has one row a thread."""
    view: View = block.values[memref]
    where = place_of_neighbours(view, indices, values.shape[1], block)
    block.observe(True, view.memory, where)
    note_write(view.memory, where, block)
    raw = np.ascontiguousarray(values[block.mask].astype(view.dtype))
    view.memory.data[where] = raw.view(np.uint8)


def place_of_neighbours(
    view: View, indices: list[Any], width: int, block: Block
) -> np.ndarray:
    """Return the bytes of elements side by side, one row an active thread."""
    assert isinstance(view.memory, Memory), "registers are not addressed"
    assert view.strides[-1] == 1, "neighbours lie side by side"
    first = _bytes_of(view, indices, block)[block.mask]
    # Rows behind each other without a gap are one: the view may split one in parts.
    place, row = 0, 1
    for index, stride, extent in reversed(
        list(zip(indices, view.strides, view.shape, strict=True))
    ):
        if stride != row:
            break
        place, row = place + index * stride, row * extent
    behind = np.broadcast_to(place, block.threads) + width
    assert (behind[block.mask] <= row).all(), f"neighbours out of {view.shape}"
    size = width * view.dtype.itemsize
    addresses = view.memory.data.ctypes.data + first[:, 0]
    assert (addresses % size == 0).all(), "a wide access must be aligned"
    return first[:, :1] + np.arange(size)


def store(op: Any, block: Block) -> None:
    view: View = block.values[op.memref]
    where = _bytes_of(view, [block.values[i] for i in op.indices], block)[block.mask]
    value = np.broadcast_to(block.values[op.value], block.threads)[block.mask]
    raw = np.ascontiguousarray(value.astype(view.dtype)).view(np.uint8)
    raw = raw.reshape(-1, view.dtype.itemsize)
    if isinstance(view.memory, np.ndarray):
        rows = np.arange(block.threads)[block.mask][:, None]
        view.memory[rows, where] = raw
    else:
        block.observe(True, view.memory, where)
        note_write(view.memory, where, block)
        view.memory.data[where] = raw


def note_read(memory: Memory, where: np.ndarray, block: Block) -> None:
    """Remember that the active threads read bytes, one row a thread.

    Raises:
        RaceError: Another thread may have written them just now.
    """
    who = np.broadcast_to(block.identities[block.mask][:, None], where.shape)
    _check_writer(memory, where, who, block, "reads")
    again = memory.read_at[where] == block.epoch
    other = again & (memory.reader[where] != who)
    noted = np.where(other, _SEVERAL, who)
    memory.reader[where] = noted
    # One thread of several at the same byte is kept, and the others do not find
    # themselves.
    memory.reader[where[memory.reader[where] != noted]] = _SEVERAL
    blocks = memory.reader_block[where]
    known = (blocks == _NOBODY) | (blocks == block.number)
    memory.reader_block[where] = np.where(known, block.number, _SEVERAL)
    memory.read_at[where] = block.epoch


def note_write(memory: Memory, where: np.ndarray, block: Block) -> None:
    """Remember that the active threads write bytes, one row a thread.

    Raises:
        RaceError: Another thread may access them at this time.
    """
    who = np.broadcast_to(block.identities[block.mask][:, None], where.shape)
    _check_writer(memory, where, who, block, "writes")
    if memory.used[where].any():
        raise RaceError(f"a thread writes to {memory.name} what is being multiplied")
    memory.unfenced[where] = True
    memory.writer[where] = who
    if (memory.writer[where] != who).any():
        raise RaceError(f"two threads write one byte of {memory.name}")
    blocks = memory.reader_block[where]
    elsewhere = (blocks != _NOBODY) & (blocks != block.number)
    now = memory.read_at[where] == block.epoch
    if (elsewhere | (now & (memory.reader[where] != who))).any():
        raise RaceError(f"a thread writes to {memory.name} what another still reads")
    memory.written_at[where] = block.epoch


def _check_writer(
    memory: Memory, where: np.ndarray, who: np.ndarray, block: Block, verb: str
) -> None:
    if memory.arriving[where].any():
        raise RaceError(f"a thread {verb} what is on its way to {memory.name}")
    writer = memory.writer[where]
    other = (writer != _NOBODY) & (writer != who)
    unordered = (writer // block.threads != block.number) | (
        memory.written_at[where] == block.epoch
    )
    if (other & unordered).any():
        raise RaceError(f"a thread {verb} what another just wrote to {memory.name}")
