"""Owns insert-barriers: threads of a block wait where one needs another's result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from magweld.bindings import gpu, ir, memref, scf
from magweld.dialects.tile_graph import FRAGMENT
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    linalg_operations_in,
    outputs_of,
    reads_output,
)
from magweld.passes.gpu.stage_ring import RingSlot
from magweld.passes.gpu.structure import (
    block_loop_of,
    element_bytes,
    is_in_space,
    is_thread_loop,
    kernels_of,
    private_space,
    storage_of,
)
from magweld.passes.gpu.thread_slices import ThreadSlice, thread_slice_of
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Insert `gpu.barrier` between thread loops that depend on each other.

    Two thread loops depend on each other if both touch the same bytes, one of them
    writes, and some thread may touch what another thread wrote or read. A barrier is
    put in front of the later one unless one lies between already. The body of a
    sequential loop is followed by itself, so that no thread runs ahead into the next
    iteration. Different arguments of a kernel are different memory, and slots of a ring
    that are different ones in every iteration. An asynchronous copy writes where it
    begins; who waits for it puts a barrier there.
    """

    name: ClassVar[str] = "insert-barriers"

    def run(self, module: Any) -> None:
        """Insert the barriers of all kernels."""
        for kernel in kernels_of(module):
            _insert(block_loop_of(kernel).body, [])


@dataclass(frozen=True)
class _Access:
    """What a thread loop does with one piece of memory.

    Attributes:
        storage: Allocation or argument.
        first: First byte, for views of one buffer.
        end: Byte after the last one.
        writes: Whether it is written.
        part: The slice of each thread, None if it is not known.
        slot: The slot of a ring that it is in, None if it is not known.
    """

    storage: Any
    first: float
    end: float
    writes: bool
    part: ThreadSlice | None
    slot: RingSlot | None = None

    def conflicts_with(self, other: _Access) -> bool:
        """Tell whether a thread may see another thread's half-done work."""
        if self.storage != other.storage or not (self.writes or other.writes):
            return False
        if self.end <= other.first or other.end <= self.first:
            return False
        is_same = (self.first, self.end) == (other.first, other.end)
        if is_same and self.slot and other.slot:
            if self.slot.is_apart_from(other.slot):
                return False
        own = self.part is not None and self.part == other.part
        return not (own and self.part is not None and self.part.is_disjoint)


def _insert(block: Any, pending: list[_Access]) -> list[_Access]:
    """Insert barriers in a block; return the accesses since the last of them."""
    for op in list(block.operations):
        if isinstance(op, gpu.BarrierOp):
            pending = []
        elif isinstance(op, scf.ForOp):
            # Twice: the second time with what the end of the body leaves behind.
            once = _insert(op.body, pending)
            pending = _insert(op.body, [_of_last_iteration(a, op) for a in once])
        elif isinstance(op, scf.IfOp):
            # All threads take it, or none.
            taken = _insert(op.then_block, pending)
            pending = pending + [a for a in taken if a not in pending]
        elif is_thread_loop(op):
            accesses = _accesses(op)
            if any(a.conflicts_with(b) for a in accesses for b in pending):
                with ir.InsertionPoint(op), op.location:
                    gpu.BarrierOp()
                pending = []
            pending = pending + [a for a in accesses if a not in pending]
    return pending


def _of_last_iteration(access: _Access, loop: Any) -> _Access:
    """Forget which slice was meant if its base moves with the iterations of a loop."""
    access = replace(access, slot=None)
    base = None if access.part is None else access.part.base
    if base is None or isinstance(base, ir.BlockArgument):
        return access
    parent = base.owner.parent
    while parent is not None and parent != loop.operation:
        parent = parent.parent
    return access if parent is None else replace(access, part=None)


def _accesses(thread_loop: Any) -> list[_Access]:
    found = []
    for op in linalg_operations_in(thread_loop):
        for value in inputs_of(op):
            read = _access(value, thread_loop, writes=False)
            if FRAGMENT in op.operation.attributes and read is not None:
                # The lanes of a subgroup load each other's factors.
                read = replace(read, part=None)
            found.append(read)
        for number, value in enumerate(outputs_of(op)):
            found.append(_access(value, thread_loop, writes=True))
            if reads_output(op, number):
                found.append(_access(value, thread_loop, writes=False))
    return [access for access in found if access is not None]


def _access(value: ir.Value, thread_loop: Any, *, writes: bool) -> _Access | None:
    if not isinstance(value.type, ir.MemRefType):
        return None
    storage = storage_of(value)
    if is_in_space(storage, private_space()):
        return None
    first, end = _bytes_of(value)
    part = thread_slice_of(value, thread_loop)
    return _Access(storage, first, end, writes, part, RingSlot.of(value))


def _bytes_of(value: ir.Value) -> tuple[float, float]:
    """Return the byte range of the placed buffer that a memref belongs to."""
    while not isinstance(value, ir.BlockArgument):
        op = value.owner.opview
        if isinstance(op, memref.ViewOp):
            first = ir.IntegerAttr(op.byte_shift.owner.attributes["value"]).value
            type_ = op.result.type
            size = math.prod(type_.shape) * element_bytes(type_.element_type)
            return first, first + size
        if storage_of(value) == value:
            break
        value = op.operands[0]
    return 0, math.inf
