"""Owns pipeline-staged-copies: the next steps are copied while one is computed with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, arith, gpu, ir, memref, nvvm, scf
from magweld.dialects.tile_graph import ASYNC_COPY, captured_values
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    is_structured,
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.retyped_slices import is_sliced, retype_slices
from magweld.passes.gpu.stage_ring import StepLoop
from magweld.passes.gpu.structure import (
    SHARED_ALIGNMENT,
    VECTOR_LOOP,
    block_loop_of,
    buffers_in,
    element_bytes,
    is_in_space,
    is_thread_loop,
    kernels_of,
    phases_in,
    storage_of,
    workgroup_space,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, nested_deeply
from magweld.passes.ir.utils import users_of

_STAGES = "tile_graph.copy_stages"
# Bytes that one instruction copies asynchronously.
_COPIED_BYTES = (4, 8, 16)
_VIEWS = frozenset(
    {"memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview"}
)


@dataclass(frozen=True)
class PipelineStagedCopies(Pass):
    """Copy the operands of the next steps while one is computed with.

        scf.for %k = 0 to 64 step 16 {
          copy %x[%k] to %t
          multiply %t
        }
            =>   copy %x[0] to %ring[0]; group; copy %x[16] to %ring[1]; group
                 scf.for %k = 0 to 64 step 16 {
                   wait for all groups but one; barrier
                   scf.if %k < 32 { copy %x[%k + 32] to %ring[(%k / 16 + 2) mod 3] }
                   group
                   multiply %ring[%k / 16 mod 3]
                 }

    The schedule says how many steps shared memory holds (`tile_graph.copy_stages` of
    the kernel); a loop has no more than it has steps, and no more than `capacity` has
    room for. A tile gets a ring of slots if one copy from an argument that nothing
    writes fills it, by 4, 8 or 16 bytes at a time, before anything reads it, and if it
    is used in this loop alone. Such copies have `tile_graph.async_copy` then.

    One barrier a step is enough: a slot is copied to behind the barrier that follows
    the step which has read it.
    """

    name: ClassVar[str] = "pipeline-staged-copies"

    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Pipeline the loops of all kernels."""
        for kernel in kernels_of(module):
            if _STAGES not in kernel.attributes:
                continue
            stages = ir.IntegerAttr(kernel.attributes[_STAGES]).value
            block = block_loop_of(kernel)
            loops = [op for op in phases_in(block.body) if isinstance(op, scf.ForOp)]
            for loop in loops:
                self._pipeline(block, loop, stages)

    def _pipeline(self, block: Any, op: scf.ForOp, stages: int) -> None:
        loop = StepLoop.of(op)
        if loop is None:
            return
        copies = list(_staged_copies(block, loop))
        stages = min(stages, len(loop.indices), self._room(block, copies))
        if copies and stages > 1:
            with op.location:
                _Pipeline(loop, copies, stages).build()

    def _room(self, block: Any, copies: Sequence[_Copy]) -> int:
        """Return how many slots rings can have, if nothing shares bytes with others."""
        sizes: dict[ir.Value, int] = {
            buffer.memref: _bytes_of(buffer.memref)
            for buffer in buffers_in(block, workgroup_space())
        }
        slots = sum(sizes[copy.tile] for copy in copies)
        room: int = self.capacity - sum(sizes.values()) + slots
        return room // max(1, slots)


def _bytes_of(buffer: ir.Value) -> int:
    type_ = ir.MemRefType(buffer.type)
    size = int(math.prod(type_.shape)) * element_bytes(type_.element_type)
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT


@dataclass(frozen=True)
class _Copy:
    """A thread loop that copies a tile of a step.

    Attributes:
        threads: The thread loop.
        tile: The buffer.
    """

    threads: Any
    tile: ir.Value


def _staged_copies(block: Any, loop: StepLoop) -> Iterator[_Copy]:
    """Yield the copies of a loop that may be made ahead."""
    written = [
        storage_of(value)
        for op in linalg_operations_in(block)
        for value in outputs_of(op)
        if isinstance(value.type, ir.MemRefType)
    ]
    for op in filter(is_thread_loop, loop.op.body.operations):
        copied = linalg_operations_in(op)
        if len(copied) != 1 or not _is_plain_copy(copied[0]):
            continue
        (source,), (target,) = inputs_of(copied[0]), outputs_of(copied[0])
        tile, origin = storage_of(target), storage_of(source)
        is_argument = isinstance(origin, ir.BlockArgument) and origin not in written
        if not is_argument or written.count(tile) != 1 or not _is_tile(tile):
            continue
        is_ahead = _needed_before(op, loop) is not None
        if is_ahead and _is_used_behind(tile, op, loop):
            yield _Copy(op, tile)


def _is_plain_copy(op: Any) -> bool:
    """Tell whether an operation copies elements as they are, several bytes at once."""
    if len(inputs_of(op)) != 1 or len(outputs_of(op)) != 1:
        return False
    (source,), (target,) = inputs_of(op), outputs_of(op)
    types = [v.type for v in (source, target) if isinstance(v.type, ir.MemRefType)]
    if len(types) != 2 or types[0].element_type != types[1].element_type:
        return False
    nest, body = loop_nest_of(op), op.operation.regions[0].blocks[0]
    yielded = list(body.operations)[-1].operands
    is_copy = len(list(body.operations)) == 1 and yielded[0] == body.arguments[0]
    if not is_copy or nest.reduction or nest.has_windows or None in nest.maps[0]:
        return False
    width = 1
    if VECTOR_LOOP in op.operation.attributes:
        vector = ir.IntegerAttr(op.operation.attributes[VECTOR_LOOP]).value
        width = nest.extents[vector]
    size = width * element_bytes(types[0].element_type)
    return nest.maps[0] == nest.maps[1] and size in _COPIED_BYTES


def _is_tile(value: ir.Value) -> bool:
    """Tell whether a memref is an allocation of rows in shared memory."""
    if isinstance(value, ir.BlockArgument):
        return False
    is_allocation = isinstance(value.owner.opview, memref.AllocOp)
    is_shared = is_allocation and is_in_space(value, workgroup_space())
    return is_shared and bool(value.type.shape) and is_sliced(value)


def _needed_before(threads: Any, loop: StepLoop) -> tuple[Any, ...] | None:
    """Return what of the body a thread loop is made from, each behind what it needs.

    None where anything but addresses is.
    """
    found: list[Any] = []

    def collect(op: Any) -> bool:
        for value in (*op.operands, *captured_values(op)):
            if isinstance(value, ir.BlockArgument):
                continue
            owner = value.owner.operation
            is_buffer = isinstance(owner.opview, memref.AllocOp)
            if is_buffer or owner.block != loop.op.body or owner in found:
                continue
            is_address = owner.name in _VIEWS or owner.name.startswith(
                ("affine.apply", "arith.")
            )
            if not is_address or not collect(owner):
                return False
            found.append(owner)
        return True

    return tuple(found) if collect(threads.operation) else None


def _is_used_behind(tile: ir.Value, threads: Any, loop: StepLoop) -> bool:
    """Tell whether all that uses a tile is in a loop, and behind a copy to it."""
    pending = list(users_of(tile))
    while pending:
        user = pending.pop()
        inside = _ancestor_in(loop.op.body, user.operation)
        if inside is None:
            return False
        if is_structured(user):
            own = inside == threads.operation
            if not own and not threads.operation.is_before_in_block(inside):
                return False
        else:
            pending += users_of(user.result)
    return True


def _ancestor_in(block: Any, op: Any) -> Any | None:
    """Return what of a block an operation is, or is nested in; None for others."""
    while op.parent is not None:
        if op.block == block:
            return op
        op = op.parent
    return None


# A thread loop, and the addresses of the body that it is made from.
_Needed = tuple[Any, tuple[Any, ...]]


class _Pipeline:
    """Builds the pipeline of one loop.

    Groups and waits are those of nvvm. nvgpu has its own, whose text does not parse
    where a group has no tokens: the result of the next line is read as one.
    """

    def __init__(self, loop: StepLoop, copies: Sequence[_Copy], stages: int) -> None:
        self._loop = loop
        self._copies = copies
        self._stages = stages

    def build(self) -> None:
        """Replace the copies of the loop by some in front of it and some ahead."""
        for copy in self._copies:
            self._make_ring(copy.tile)
        # The slots are addresses of the body as well.
        needed = [
            (copy.threads, _needed_before(copy.threads, self._loop) or ())
            for copy in self._copies
        ]
        self._copy_first(needed)
        self._copy_ahead(needed)
        for threads, before in needed:
            threads.operation.erase()
            for op in reversed(before):
                if not any(True for result in op.results for _ in result.uses):
                    op.erase()
        for copy in self._copies:
            copy.tile.owner.erase()

    def _copy_first(self, needed: Sequence[_Needed]) -> None:
        """Copy the first steps in front of the loop, each a group."""
        with ir.InsertionPoint(self._loop.op):
            for index in self._loop.indices[: self._stages - 1]:
                start = arith.ConstantOp(ir.IndexType.get(), index).result
                self._copy(needed, start)
                nvvm.CpAsyncCommitGroupOp()

    def _copy_ahead(self, needed: Sequence[_Needed]) -> None:
        """Wait for the copies of a step, and make those of a later one."""
        loop, variable = self._loop, self._loop.op.induction_variable
        index = ir.IndexType.get()
        ahead = (self._stages - 1) * loop.step
        with ir.InsertionPoint.at_block_begin(loop.op.body):
            nvvm.CpAsyncWaitGroupOp(self._stages - 2)
            gpu.BarrierOp()
            end = arith.ConstantOp(index, loop.upper - ahead).result
            is_there = arith.CmpIOp(arith.CmpIPredicate.slt, variable, end).result
            conditional = scf.IfOp(is_there)
            nvvm.CpAsyncCommitGroupOp()
        with ir.InsertionPoint(conditional.then_block):
            later = ir.AffineMap.get(1, 0, [ir.AffineExpr.get_dim(0) + ahead])
            self._copy(needed, affine.AffineApplyOp(later, [variable]).result)
            scf.YieldOp([])

    def _copy(self, needed: Sequence[_Needed], index: ir.Value) -> None:
        """Build the copies of the step with an index."""
        for threads, before in needed:
            values = ValueMap()
            values[self._loop.op.induction_variable] = index
            for op in before:
                clone_mapped(op, values)
            clone = clone_mapped(threads, values)
            for op in nested_deeply(clone):
                if is_structured(op):
                    op.attributes[ASYNC_COPY] = ir.UnitAttr.get()

    def _make_ring(self, tile: ir.Value) -> None:
        type_ = ir.MemRefType(tile.type)
        rows, *rest = type_.shape
        with ir.InsertionPoint(self._loop.op):
            ring = memref.AllocOp(
                ir.MemRefType.get(
                    [self._stages * rows, *rest],
                    type_.element_type,
                    memory_space=type_.memory_space,
                ),
                [],
                [],
            ).memref
        with ir.InsertionPoint.at_block_begin(self._loop.op.body):
            slot = self._loop.slot(ring, rows, self._stages)
        tile.replace_all_uses_with(slot)
        retype_slices(slot)
