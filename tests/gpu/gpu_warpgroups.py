"""Owns products of warpgroups of interpreted GPU code, which run beside it.

Written from the PTX ISA ("Asynchronous warpgroup level matrix instructions": matrix
descriptors, canonical layouts with the swizzle of 128 bytes, accumulators of m64nNk16,
proxies), not from the tables of the passes. Factors are read at some time before their
group has been waited for; until then who writes their bytes races, and sums are no
numbers. Bytes are read through the asynchronous proxy: threads that wrote them have to
have fenced them behind that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpu_fragments import _f32
from gpu_memory import Block, Memory, RaceError, View, note_read

from magweld.bindings import ir

_THREADS = 128
_SWIZZLE_128 = 1


@dataclass(frozen=True)
class _Pending:
    """A product that has begun.

    Attributes:
        factors: Both matrices of each warpgroup, as they were when it began.
        read: Their bytes, one row an active warpgroup.
        mask: The threads.
        before: The sums that it adds to.
        after: What becomes the result.
    """

    factors: tuple[np.ndarray, np.ndarray]
    read: np.ndarray
    mask: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def finish(self, block: Block) -> None:
        """Compute the result, and forget that its factors are being read."""
        left, right = self.factors
        product = left @ right.swapaxes(1, 2)
        thread = np.arange(_THREADS)
        row, pair = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
        number = np.arange(self.after.shape[1])
        rows = row[:, None] + number % 4 // 2 * 8
        columns = pair[:, None] + number // 4 * 8 + number % 2
        own = product[:, rows, columns].reshape(-1, number.size)
        self.after[:] = np.nan
        self.after[self.mask] = (self.before + own)[self.mask]
        block.shared.used[self.read] -= 1
        _note(block.shared, self.read, self.mask, block)


class WarpgroupGroups:
    """The products of a block that are under way, by the group they are of."""

    def __init__(self) -> None:
        self.opened: list[_Pending] = []
        self.closed: list[list[_Pending]] = []
        self.has_fence = False

    def wait(self, left: int, block: Block) -> None:
        """Let all groups but the youngest `left` finish."""
        while len(self.closed) > left:
            for one in self.closed.pop(0):
                one.finish(block)
        self.has_fence = False

    def continues(self, sums: np.ndarray) -> bool:
        """Tell whether sums are the result of a product that is under way."""
        begun = [*self.opened, *(one for group in self.closed for one in group)]
        return any(one.after is sums for one in begun)

    def check_all_finished(self) -> None:
        """Raise an error for products that nobody has waited for."""
        assert not self.opened, "a block ends with products that are of no group"
        assert not self.closed, "a block ends with products that are under way"


def _note(memory: Memory, read: np.ndarray, mask: np.ndarray, block: Block) -> None:
    """Note that warpgroups read bytes: no thread is the one that does.

    The first and the last thread of each stand for all, so that a byte that any thread
    has just written is written by another one.
    """
    outer = block.mask
    active = mask.reshape(-1, _THREADS)[:, 0]
    for thread in (0, _THREADS - 1):
        block.mask = np.zeros(block.threads, bool)
        block.mask.reshape(-1, _THREADS)[active, thread] = True
        note_read(memory, read, block)
    block.mask = outer


def _fence_proxy(op: Any, block: Block) -> None:
    assert block.mask.all(), "a fence that some threads skip"
    assert "async.shared" in str(op.operation.attributes["kind"])
    block.shared.unfenced[:] = False


def _fence_registers(op: Any, block: Block) -> None:
    block.warpgroups.has_fence = True


def _multiply(op: Any, block: Block) -> None:
    lanes = block.mask.reshape(-1, _THREADS)
    assert (lanes.all(1) | ~lanes.any(1)).all(), "a product that some threads skip"
    before = block.values[op.inouts]
    groups = block.warpgroups
    if not groups.continues(before):
        assert groups.has_fence, "sums that were written and not fenced"
        before = before.copy()
    columns = before.shape[1] * 2
    layouts = [str(op.operation.attributes[f"layout{side}"]) for side in "AB"]
    left = _places(op.descriptorA, 64, "col" in layouts[0], block)
    right = _places(op.descriptorB, columns, "row" in layouts[1], block)
    shared, kind = block.shared, str(op.typeA)
    read = np.concatenate([one.reshape(len(one), -1) for one in (left, right)], 1)
    active = lanes[:, 0]
    left[~active], right[~active], read = 0, 0, read[active]
    if shared.unfenced[read].any():
        raise RaceError("a warpgroup reads what was written and not fenced")
    shared.used[read] += 1
    _note(shared, read, block.mask, block)
    factors = [
        _f32(
            np.ascontiguousarray(shared.data[one]).view(_type_of(kind))[..., 0],
            "bf16" if "bf16" in kind else "f16",
        )
        for one in (left, right)
    ]
    after = np.full_like(before, np.nan)
    groups.opened.append(
        _Pending((factors[0], factors[1]), read, block.mask.copy(), before, after)
    )
    block.values[op.results_] = after


def _type_of(kind: str) -> str:
    return "u2" if "bf16" in kind else "f2"


def _places(
    descriptor: ir.Value, lines: int, is_across: bool, block: Block
) -> np.ndarray:
    """Return the bytes of a factor: by warpgroup, line, step and byte."""
    every = np.broadcast_to(block.values[descriptor], block.threads)
    every = every.reshape(-1, _THREADS)
    assert (every == every[:, :1]).all(), "threads of a warpgroup differ"
    bits = every[:, 0].astype(np.uint64)
    start, leading, stride, offset, swizzle = (
        (bits >> np.uint64(first) & np.uint64((1 << count) - 1)).astype(np.int64)
        for first, count in ((0, 14), (16, 14), (32, 14), (49, 3), (62, 2))
    )
    assert (swizzle == _SWIZZLE_128).all(), "another swizzle"
    assert not offset.any(), "pieces begin at multiples of 1024 bytes"
    line, step = np.arange(lines)[:, None], np.arange(16)
    leading, stride = (16 * one[:, None, None] for one in (leading, stride))
    if is_across:
        inner = step % 8 * 128 + line % 64 * 2
        place = line // 64 * leading + step // 8 * stride + inner
    else:
        place = line // 8 * stride + (line % 8 * 128 + step * 2)
    place = place + 16 * start[:, None, None]
    place = place ^ (place >> 7 & 7) << 4
    return place[..., None] + np.arange(2)


def _commit(op: Any, block: Block) -> None:
    groups = block.warpgroups
    groups.closed.append(groups.opened)
    groups.opened = []


def _wait(op: Any, block: Block) -> None:
    block.warpgroups.wait(ir.IntegerAttr(op.group).value, block)


def _undefined(op: Any, block: Block) -> None:
    fields = str(op.results[0].type).count("f32")
    block.values[op.results[0]] = np.full((block.threads, fields), np.nan, np.float32)


def _insert(op: Any, block: Block) -> None:
    (number,) = list(ir.DenseI64ArrayAttr(op.operation.attributes["position"]))
    container, value = (block.values[operand] for operand in _inserted(op))
    made = container.copy()
    made[:, number] = value
    block.values[op.results[0]] = made


def _inserted(op: Any) -> Iterator[ir.Value]:
    yield op.container
    yield op.value


def _address(op: Any, block: Block) -> None:
    view: View = block.values[op.source]
    assert view.memory is block.shared, "an address of shared memory"
    block.values[op.aligned_pointer] = np.int64(view.offset * view.dtype.itemsize)


HANDLERS = {
    "llvm.insertvalue": _insert,
    "llvm.mlir.undef": _undefined,
    "memref.extract_aligned_pointer_as_index": _address,
    "nvvm.fence.proxy": _fence_proxy,
    "nvvm.wgmma.commit.group.sync.aligned": _commit,
    "nvvm.wgmma.fence.aligned": _fence_registers,
    "nvvm.wgmma.mma_async": _multiply,
    "nvvm.wgmma.wait.group.sync.aligned": _wait,
}
