"""Owns how the blocks of a stream come to rings, and how threads wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import arith, gpu, ir, nvvm, scf
from magweld.passes.gpu.register_tiles import Stored, applied, constant_index
from magweld.passes.gpu.stream_boxes import StreamBoxes, box_map
from magweld.passes.gpu.stream_rings import Block, Ring, Stream
from magweld.passes.gpu.stream_values import StreamValues
from magweld.passes.gpu.streamed_operands import StreamedOperand, StreamLoop
from magweld.passes.gpu.structure import workgroup_space
from magweld.passes.gpu.swizzled_tiles import build_fence
from magweld.passes.ir.utils import located_error


class StreamBlocks:
    """Builds the copies, in the loop over blocks and behind it.

    Attributes:
        rings: Of what each product reads in blocks, in their order.
    """

    def __init__(self, loop: StreamLoop, stream: Stream, values: StreamValues) -> None:
        """Say what is walked.

        Args:
            loop: The loop over blocks.
            stream: How it is walked.
            values: What stands for values of the kernel.
        """
        self._loop = loop
        self._stream = stream
        self._values = values
        self.rings: list[Ring] = []
        # What copies blocks as boxes, None where threads copy them.
        self._boxes: StreamBoxes | None = None
        # Blocks that the last ring is behind the others.
        self._behind = 0
        # The position of the stream, and which product of the block is next.
        self._at: Any = None
        self._next = 0

    def ring_for(self, product: Any) -> tuple[Ring, Any]:
        """Return the ring that the next product reads, and the position of its block.

        Raises:
            PassError: It is none of a block; located at it.
        """
        if self._next >= len(self.rings):
            raise located_error(
                product, "expected products of blocks of a stream alone"
            )
        if self._at is None:
            # The block behind the loop: the last one that was copied.
            self._at = self._loop.upper
            # No ring is read behind the others there.
            self._behind = 0
            self._wait()
        ring = self.rings[self._next]
        self._next += 1
        return ring, self._at

    def enter(self, position: Any) -> None:
        """Build what comes first in the loop over blocks."""
        self._at = position
        self._copy_ahead()

    def leave(self) -> None:
        """Say that what is built next is behind the loop."""
        self._at, self._next = None, 0

    @property
    def can_rotate(self) -> bool:
        """Whether warpgroups read all blocks, so that products run beside threads."""
        has_copies = self._stream.has_async_copies
        return has_copies and all(ring.swizzled is not None for ring in self.rings)

    def rotate(self) -> None:
        """Say that the last ring is read a block later than the others."""
        self._behind = self._stream.size

    def make_rings(self) -> None:
        """Build the rings, in shared memory."""
        i8 = ir.IntegerType.get_signless(8)
        dynamic = ir.ShapedType.get_dynamic_size()
        shared = gpu.DynamicSharedMemoryOp(
            ir.MemRefType.get([dynamic], i8, memory_space=workgroup_space())
        ).result
        starts = self._loop.starts(
            self._stream.stages, has_warpgroups=self._stream.has_warpgroups
        )
        for operand, start in zip(self._loop.operands, starts, strict=False):
            ring = Ring(self._block(operand), self._stream, shared, start)
            self.rings.append(ring)
        barriers = self._stream.barriers_at
        boxed = self.can_rotate and all(map(_has_boxes, self.rings))
        if barriers is not None and boxed:
            self._boxes = StreamBoxes(self.rings, self._stream, shared, barriers)

    def _block(self, operand: StreamedOperand) -> Block:
        source = self._values.tile(operand.op.source)
        if not isinstance(source, Stored):
            raise located_error(operand.op, "expected a part of an argument")

        def offsets(position: Any) -> Sequence[Any]:
            def index(value: Any) -> Any:
                return self._values.index_at(value, position)

            shape = operand.op.result.type.shape
            return self._values.part(source, operand.op, shape, index).offsets

        return Block(
            source.memory,
            offsets,
            source.kept[operand.outer],
            source.kept[operand.inner],
            operand.shape,
            operand.streamed,
        )

    def copy_first(self) -> None:
        """Build the copies of the first blocks, which begin before the loop."""
        size = self._stream.size
        ahead = self._stream.stages - 1 + self._behind // size
        for start in range(0, ahead * size, size):
            for ring, behind in self._with_distances():
                if 0 <= start - behind < self._stream.extent:
                    self._copy(ring, constant_index(start - behind))
            self._commit()

    def wait_for_first(self) -> None:
        """Build a wait for the first block, where the others are read a block later."""
        self._at = 0
        self._wait(1)

    def _with_distances(self) -> list[tuple[Ring, int]]:
        *others, last = self.rings
        return [*((ring, 0) for ring in others), (last, self._behind)]

    def _copy_ahead(self) -> None:
        """Wait for the copies of this block, and begin those of a later one."""
        if not self._stream.has_async_copies:
            gpu.BarrierOp()
            for ring in self.rings:
                ring.copy(self._at)
            gpu.BarrierOp()
            return
        self._wait()
        ahead = (self._stream.stages - 1) * self._stream.size
        if self._behind:
            for ring, behind in self._with_distances():
                self._copy_later([ring], ahead - behind)
        else:
            self._copy_later(self.rings, ahead)
        self._commit()

    def _copy(self, ring: Ring, position: Any) -> None:
        if self._boxes is None:
            ring.copy(position)
        else:
            self._boxes.copy(ring, position)

    def _commit(self) -> None:
        """Make a group of the copies that threads have begun."""
        if self._boxes is None:
            nvvm.CpAsyncCommitGroupOp()

    def _copy_later(self, rings: Sequence[Ring], ahead: int) -> None:
        """Build copies of blocks so far ahead of this one, where there are such."""
        if isinstance(self._at, int):
            if self._at + ahead < self._stream.extent:
                for ring in rings:
                    self._copy(ring, constant_index(self._at + ahead))
            return
        end = constant_index(self._stream.extent - ahead)
        is_there = arith.CmpIOp(arith.CmpIPredicate.slt, self._at, end).result
        conditional = scf.IfOp(is_there)
        with ir.InsertionPoint(conditional.then_block):
            later = applied(ir.AffineExpr.get_dim(0) + ahead, [self._at])
            for ring in rings:
                self._copy(ring, later)
            scf.YieldOp([])

    def _wait(self, more: int = 0) -> None:
        """Wait until the block at this position is there, for all threads.

        Args:
            more: Groups of copies that have begun before others would.
        """
        if self._boxes is not None:
            rings = self._with_distances()
            if self._behind and isinstance(self._at, int) and self._at:
                # Behind the loop only what is a block behind is read; what is left of
                # the others is waited for where it is.
                rings = rings[-1:]
            for ring, behind in rings:
                self._boxes.wait(ring, self._at, behind)
            gpu.BarrierOp()
            return
        if self._stream.has_async_copies:
            nvvm.CpAsyncWaitGroupOp(self._stream.stages - 2 + more)
            if any(ring.swizzled for ring in self.rings):
                build_fence()
            gpu.BarrierOp()
            return
        if isinstance(self._at, int):
            gpu.BarrierOp()
            for ring in self.rings:
                ring.copy(constant_index(self._at))
            gpu.BarrierOp()


def _has_boxes(ring: Ring) -> bool:
    return box_map(ring.block) is not None
