"""Owns select-bulk-copies: which copies the tensor memory accelerator makes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from magweld.bindings import arith, func, gpu, ir, linalg, memref, nvvm, scf
from magweld.dialects.tile_graph import ASYNC_COPY, BULK_COPY, SWIZZLED
from magweld.passes.gpu.bulk_copies import (
    BulkCopy,
    by_one_thread,
    init_mbarriers,
    mbarrier_at,
    wait_for_phase,
)
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    linalg_operations_in,
    outputs_of,
)
from magweld.passes.gpu.pointer_table import takes_pointers
from magweld.passes.gpu.register_tiles import applied
from magweld.passes.gpu.stage_ring import StepLoop
from magweld.passes.gpu.structure import (
    block_loop_of,
    is_thread_loop,
    kernels_of,
    workgroup_space,
)
from magweld.passes.gpu.swizzled_tiles import SWIZZLE_ALIGNMENT, aligned_bytes
from magweld.passes.gpu.tensor_maps import add_map
from magweld.passes.gpu.thread_slices import ThreadSlice, thread_slice_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class SelectBulkCopies(Pass):
    """Let the tensor memory accelerator make the copies that run ahead of a loop.

        copy %x[0] to %ring[0] by all threads; group
        scf.for %k = 0 to 256 step 64 {
          wait for all groups but one; fence; barrier
          scf.if %k < 128 { copy %x[%k + 128] to %ring[...] by all threads }
          group
          multiply %ring[%k / 64 mod 3]
        }
            =>   one thread: make an mbarrier for each slot
                 fence; barrier
                 one thread: expect the bytes of the slot; begin the copy of %x[0]
                 scf.for %k = 0 to 256 step 64 {
                   wait for the phase of the mbarrier of the slot; barrier
                   scf.if %k < 128 { one thread: expect; begin to copy %x[%k + 128] }
                   multiply %ring[%k / 64 mod 3]
                 }
                 one thread: give the mbarriers up; barrier

    Such a copy is one `linalg.copy` of a tile with `tile_graph.bulk_copy`, behind the
    `nvvm.mbarrier.arrive.expect_tx` of its slot. No thread computes addresses or waits
    for its pieces, and what arrives is seen by `wgmma` without a fence. The kernel has
    a tensor map for each matrix that is copied (`magweld.tensor_maps`).

    All copies of a loop are taken or none: those to swizzled rings of slices of
    matrices that are arguments, whose rows are multiples of 16 bytes. The kernels of a
    batch and those of a joint launch take a table of pointers, and are left as they
    are, and so is a kernel without room for the mbarriers.
    """

    name: ClassVar[str] = "select-bulk-copies"

    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Choose the copies of all kernels."""
        called = {call.callee.value for call in operations_of(module, func.CallOp)}
        for kernel in kernels_of(module):
            if not takes_pointers(kernel) or kernel.name.value in called:
                continue
            block = block_loop_of(kernel)
            for op in list(block.body.operations):
                room = self.capacity - aligned_bytes(block)
                if isinstance(op, scf.ForOp) and room >= SWIZZLE_ALIGNMENT:
                    steps = _Steps.of(op)
                    if steps is not None:
                        with op.location:
                            _Selection(kernel, steps).build()


class _Copy(NamedTuple):
    """A copy of a tile.

    Attributes:
        source: What is copied.
        target: Where it goes.
        bulk: What the tensor memory accelerator copies for it.
    """

    source: ir.Value
    target: ir.Value
    bulk: BulkCopy

    @property
    def slots(self) -> int:
        """How many slots the ring has."""
        return self.bulk.slot.tile.rows // self.bulk.slot.rows


@dataclass(frozen=True)
class _Group:
    """The copies of a step that begin at one place.

    Attributes:
        threads: The loops over threads that make them.
        commit: What makes a group of them.
    """

    threads: tuple[Any, ...]
    commit: Any

    @functools.cached_property
    def copies(self) -> list[_Copy]:
        """What is copied; nothing if threads have to make a copy of these."""
        found = [_copy_of(one) for one in self.threads]
        copies = [one for one in found if one is not None]
        return copies if len(copies) == len(found) else []


@dataclass(frozen=True)
class _Steps:
    """A loop whose steps are copied ahead, to swizzled rings alone.

    Attributes:
        loop: The loop.
        first: The groups in front of it, one a step.
        ahead: The group in it.
        wait: The wait for the oldest group.
        slots: How many steps the rings have room for.
    """

    loop: StepLoop
    first: tuple[_Group, ...]
    ahead: _Group
    wait: Any
    slots: int

    @staticmethod
    def of(op: scf.ForOp) -> _Steps | None:
        """Return the steps of a loop, None where threads have to copy."""
        loop = StepLoop.of(op)
        body = list(op.body.operations)
        waits = [one for one in body if isinstance(one, nvvm.CpAsyncWaitGroupOp)]
        inside = _groups_in(body)
        if loop is None or len(waits) != 1 or len(inside) != 1:
            return None
        first = tuple(_groups_in(_in_front_of(op)))
        every = [*first, *inside]
        if not first or not all(group.copies for group in every):
            return None
        slots = {copy.slots for group in every for copy in group.copies}
        if len(slots) != 1:
            return None
        return _Steps(loop, first, inside[0], waits[0], slots.pop())


def _in_front_of(loop: scf.ForOp) -> list[Any]:
    """Return what stands between a loop and the sequential loop before it."""
    found: list[Any] = []
    for op in loop.operation.block.operations:
        if op.operation == loop.operation:
            return found
        found = [] if isinstance(op, scf.ForOp) else [*found, op]
    raise AssertionError("a loop stands in its block")


def _groups_in(operations: Sequence[Any]) -> list[_Group]:
    """Return the groups of asynchronous copies that some operations make."""
    groups, threads = [], []
    for op in operations:
        inside = list(op.then_block.operations) if isinstance(op, scf.IfOp) else [op]
        threads += [one for one in inside if _is_copy(one)]
        if isinstance(op, nvvm.CpAsyncCommitGroupOp):
            groups.append(_Group(tuple(threads), op))
            threads = []
    return groups


def _is_copy(op: Any) -> bool:
    return is_thread_loop(op) and any(
        ASYNC_COPY in one.operation.attributes for one in linalg_operations_in(op)
    )


def _copy_of(threads: Any) -> _Copy | None:
    """Return the copy of a tile whose parts threads copy.

    Returns:
        None where they do not copy all of it, or have to copy it.
    """
    copied = linalg_operations_in(threads)
    if len(copied) != 1 or SWIZZLED not in copied[0].operation.attributes:
        return None
    (source,), (target,) = inputs_of(copied[0]), outputs_of(copied[0])
    slices = [thread_slice_of(value, threads) for value in (source, target)]
    read, written = slices
    if read is None or written is None or read.dimensions != written.dimensions:
        return None
    if not _covers(read) or not _covers(written):
        return None
    tiles = _whole(read.base), _whole(written.base)
    bulk = BulkCopy.of(*tiles)
    return None if bulk is None else _Copy(*tiles, bulk)


def _covers(slice_: ThreadSlice) -> bool:
    """Tell whether all threads together have every element of what they share."""
    shape = list(ir.MemRefType(slice_.base.type).shape)
    counts = [
        one.size * (1 if one.loop is None else slice_.trips[one.loop])
        for one in slice_.dimensions
    ]
    return slice_.has_distinct_rows and counts == shape


def _whole(value: ir.Value) -> ir.Value:
    """Return a tile whose dimensions were split for threads."""
    while not isinstance(value, ir.BlockArgument) and isinstance(
        value.owner.opview, memref.ExpandShapeOp
    ):
        value = value.owner.operands[0]
    return value


class _Selection:
    """Builds what a loop has in place of copies by threads."""

    def __init__(self, kernel: func.FuncOp, steps: _Steps) -> None:
        self._kernel = kernel
        self._steps = steps
        self._loop = steps.loop

    def build(self) -> None:
        """Replace the copies of the loop, their groups and the wait for them."""
        steps = self._steps
        barriers = self._make_barriers()
        for number, group in enumerate(steps.first):
            self._begin(group, barriers, number % steps.slots)
        with ir.InsertionPoint(steps.ahead.threads[-1]):
            slot = self._number(len(steps.first), steps.slots)
        self._begin(steps.ahead, barriers, slot)
        self._wait(barriers)
        self._give_up(barriers)
        for group in (*steps.first, steps.ahead):
            for op in (*group.threads, group.commit):
                op.operation.erase()

    def _make_barriers(self) -> ir.Value:
        """Make an mbarrier for each slot."""
        slots = self._steps.slots
        i64 = ir.IntegerType.get_signless(64)
        type_ = ir.MemRefType.get([slots], i64, memory_space=workgroup_space())
        with ir.InsertionPoint(self._steps.first[0].threads[0]):
            barriers = memref.AllocOp(type_, [], []).memref
            init_mbarriers(barriers, slots, by_one_thread)
        return barriers

    def _begin(self, group: _Group, barriers: ir.Value, slot: ir.Value | int) -> None:
        """Let one thread begin the copies of a group."""
        total = sum(copy.bulk.nbytes for copy in group.copies)
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint(group.threads[-1]), by_one_thread() as body:
            expected = arith.ConstantOp(i32, total).result
            barrier = mbarrier_at(barriers, slot)
            nvvm.MBarrierArriveExpectTxOp(barrier, expected, results=[])
            for copy in group.copies:
                linalg.copy(copy.source, outs=[copy.target])
                *_, made = body.operations
                attributes = made.operation.attributes
                attributes[BULK_COPY] = attributes[SWIZZLED] = ir.UnitAttr.get()
        for copy in group.copies:
            number, map_ = copy.bulk.part.argument.arg_number, copy.bulk.map
            add_map(self._kernel, number, map_.box, map_.swizzle)

    def _wait(self, barriers: ir.Value) -> None:
        """Wait for the bytes of a slot, in place of groups of threads."""
        wait, slots = self._steps.wait, self._steps.slots
        with ir.InsertionPoint(wait):
            barrier = mbarrier_at(barriers, self._number(0, slots))
            # Slots are filled again and again: every other time the phase is odd.
            turn = ir.AffineExpr.get_floor_div(self._count(), slots) % 2
            wait_for_phase(barrier, self._applied(turn))
        body = list(self._loop.op.body.operations)
        behind = body[body.index(wait) + 1]
        if isinstance(behind, nvvm.FenceProxyOp):
            behind.operation.erase()
        wait.operation.erase()

    def _give_up(self, barriers: ir.Value) -> None:
        """Let what lies behind the loop have the bytes of the mbarriers."""
        # The last wait of each thread is in front of a barrier of the loop.
        with ir.InsertionPoint.after(self._loop.op):
            with by_one_thread():
                for slot in range(self._steps.slots):
                    nvvm.MBarrierInvalOp(mbarrier_at(barriers, slot))
            gpu.BarrierOp()

    def _count(self) -> ir.AffineExpr:
        """Return how many iterations have been made."""
        first = ir.AffineExpr.get_dim(0) - self._loop.lower
        return ir.AffineExpr.get_floor_div(first, self._loop.step)

    def _number(self, ahead: int, slots: int) -> ir.Value:
        """Build the slot of a step that is so many steps ahead."""
        return self._applied((self._count() + ahead) % slots)

    def _applied(self, expression: ir.AffineExpr) -> ir.Value:
        made: ir.Value = applied(expression, [self._loop.op.induction_variable])
        return made
