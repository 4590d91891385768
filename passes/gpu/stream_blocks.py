"""Owns how the blocks of a stream come to rings, and how threads wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import arith, gpu, ir, nvvm, scf
from magweld.passes.gpu.register_tiles import Stored, applied, constant_index
from magweld.passes.gpu.stream_rings import Block, Ring, Stream
from magweld.passes.gpu.stream_values import StreamValues
from magweld.passes.gpu.streamed_operands import StreamedOperand, StreamLoop
from magweld.passes.gpu.structure import workgroup_space
from magweld.passes.gpu.swizzled_tiles import FENCE
from magweld.passes.ir.utils import located_error


class StreamBlocks:
    """Builds the copies, in the loop over blocks and behind it."""

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
        self._rings: list[Ring] = []
        # The position of the stream, and which product of the block is next.
        self._at: Any = None
        self._next = 0

    def ring_for(self, product: Any) -> tuple[Ring, Any]:
        """Return the ring that the next product reads, and the position of its block.

        Raises:
            PassError: It is none of a block; located at it.
        """
        if self._next >= len(self._rings):
            raise located_error(
                product, "expected products of blocks of a stream alone"
            )
        if self._at is None:
            # The block behind the loop: the last one that was copied.
            self._at = self._loop.upper
            self._wait()
        ring = self._rings[self._next]
        self._next += 1
        return ring, self._at

    def enter(self, position: Any) -> None:
        """Build what comes first in the loop over blocks."""
        self._at = position
        self._copy_ahead()

    def leave(self) -> None:
        """Say that what is built next is behind the loop."""
        self._at, self._next = None, 0

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
            self._rings.append(ring)

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
        for number in range(self._stream.stages - 1):
            for ring in self._rings:
                ring.copy(constant_index(number * self._stream.size))
            nvvm.CpAsyncCommitGroupOp()

    def _copy_ahead(self) -> None:
        """Wait for the copies of this block, and begin those of a later one."""
        stream = self._stream
        if not stream.has_async_copies:
            gpu.BarrierOp()
            for ring in self._rings:
                ring.copy(self._at)
            gpu.BarrierOp()
            return
        self._wait()
        ahead = (stream.stages - 1) * stream.size
        end = constant_index(stream.extent - ahead)
        is_there = arith.CmpIOp(arith.CmpIPredicate.slt, self._at, end).result
        conditional = scf.IfOp(is_there)
        with ir.InsertionPoint(conditional.then_block):
            later = applied(ir.AffineExpr.get_dim(0) + ahead, [self._at])
            for ring in self._rings:
                ring.copy(later)
            scf.YieldOp([])
        nvvm.CpAsyncCommitGroupOp()

    def _wait(self) -> None:
        """Wait until the block at this position is there, for all threads."""
        if self._stream.has_async_copies:
            nvvm.CpAsyncWaitGroupOp(self._stream.stages - 2)
            if any(ring.swizzled for ring in self._rings):
                # `wgmma` reads shared memory on another way than threads write it.
                kind, space = (ir.Attribute.parse(text) for text in FENCE)
                nvvm.FenceProxyOp(kind, space=space)
            gpu.BarrierOp()
            return
        if isinstance(self._at, int):
            gpu.BarrierOp()
            for ring in self._rings:
                ring.copy(constant_index(self._at))
            gpu.BarrierOp()
