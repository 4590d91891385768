"""Owns pipeline-staged-copies: the next steps are copied while one is computed with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, arith, gpu, ir, memref, nvvm, scf
from magweld.dialects.tile_graph import ASYNC_COPY, IN_FLIGHT
from magweld.passes.gpu.linalg_structure import is_structured, linalg_operations_in
from magweld.passes.gpu.retyped_slices import retype_slices
from magweld.passes.gpu.stage_ring import StepLoop
from magweld.passes.gpu.staged_copies import (
    StagedCopies,
    needed_before,
    staged_copies,
)
from magweld.passes.gpu.structure import (
    SHARED_ALIGNMENT,
    block_loop_of,
    buffers_in,
    element_bytes,
    kernels_of,
    phases_in,
    workgroup_space,
)
from magweld.passes.gpu.warpgroup_product import warpgroups_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, nested_deeply

_STAGES = "tile_graph.copy_stages"
# Slots of which two are on their way, one is read, and one may be.
_FEWEST_AHEAD = 3


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
    room for. A tile gets a ring of slots if copies from arguments that nothing writes
    fill it, each a part of its own, by 4, 8 or 16 bytes at a time, before anything
    reads it, and if it is used in this loop alone. Such copies have
    `tile_graph.async_copy` then.

    One barrier a step is enough: a slot is copied to behind the barrier that follows
    the step which has read it. With four slots or more it is the barrier after that for
    products that all `warpgroups` of a block can compute: one of them may be under way
    (`tile_graph.in_flight`) while the next begins.
    """

    name: ClassVar[str] = "pipeline-staged-copies"

    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152
    warpgroups: Annotated[int, "how many warpgroups a block has, if any compute"] = 0

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
        copies = list(staged_copies(block, loop))
        stages = min(stages, len(loop.indices), self._room(block, copies))
        if copies and stages > 1:
            read = self._read_behind(op) if stages > _FEWEST_AHEAD else []
            for product in read:
                product.operation.attributes[IN_FLIGHT] = ir.UnitAttr.get()
            with op.location:
                _Pipeline(loop, copies, stages, stages - bool(read)).build()

    def _read_behind(self, loop: Any) -> list[Any]:
        """Return the products of a loop that may be under way while the next begins."""
        return [
            op
            for op in linalg_operations_in(loop)
            if self.warpgroups and warpgroups_of(op) == self.warpgroups
        ]

    def _room(self, block: Any, copies: Sequence[StagedCopies]) -> int:
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


# A thread loop, and the addresses of the body that it is made from.
_Needed = tuple[Any, tuple[Any, ...]]


class _Pipeline:
    """Builds the pipeline of one loop.

    Groups and waits are those of nvvm. nvgpu has its own, whose text does not parse
    where a group has no tokens: the result of the next line is read as one.
    """

    def __init__(
        self, loop: StepLoop, copies: Sequence[StagedCopies], slots: int, stages: int
    ) -> None:
        self._loop = loop
        self._copies = copies
        self._slots = slots
        # Steps that are on their way or computed with: no more than there are slots.
        self._stages = stages

    def build(self) -> None:
        """Replace the copies of the loop by some in front of it and some ahead."""
        for copy in self._copies:
            self._make_ring(copy.tile)
        # The slots are addresses of the body as well.
        needed = [
            (threads, needed_before(threads, self._loop) or ())
            for copies in self._copies
            for threads in copies.threads
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
                    [self._slots * rows, *rest],
                    type_.element_type,
                    memory_space=type_.memory_space,
                ),
                [],
                [],
            ).memref
        with ir.InsertionPoint.at_block_begin(self._loop.op.body):
            slot = self._loop.slot(ring, rows, self._slots)
        tile.replace_all_uses_with(slot)
        retype_slices(slot)
