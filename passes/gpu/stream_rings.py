"""Owns what a stream reads in blocks: a ring in shared memory, and copies to it.

A block of a tensor is a matrix whose rows lie side by side in memory. Rows of a slot
lie 16 bytes further apart than they are long, or 32: an odd number of pieces of 16
bytes, of which eight are in all banks, whichever piece of a row they begin at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, gpu, ir, memref, nvgpu, scf, vector
from magweld.passes.gpu.register_tiles import (
    applied,
    as_value,
    constant_index,
    plus,
    sum_of,
)
from magweld.passes.gpu.stream_warpgroups import can_swizzle, swizzled_element
from magweld.passes.gpu.structure import VECTOR_BYTES, element_bytes, workgroup_space
from magweld.passes.gpu.swizzled_tiles import SwizzledTile, flat_view
from magweld.passes.tiling.stream_factors import ring_pitch

Offsets = Callable[[Any], Sequence[Any]]
"""Where the block that begins at a position of the stream lies in a tensor."""


@dataclass(frozen=True)
class Block:
    """The blocks of a tensor that a product reads.

    Attributes:
        memory: The tensor, in global memory.
        offsets: Where a block begins in it.
        outer: The dimension of it along which rows follow each other.
        inner: That along which they go.
        shape: Rows of a block, and elements of a row.
        streamed: Whether the stream goes over the rows, or along them.
    """

    memory: Any
    offsets: Offsets
    outer: int
    inner: int
    shape: tuple[int, int]
    streamed: bool

    @property
    def element(self) -> Any:
        """The type of an element."""
        return ir.MemRefType(self.memory.type).element_type

    @property
    def piece(self) -> int:
        """Elements that a thread copies at a time."""
        return VECTOR_BYTES // element_bytes(self.element)

    @property
    def pitch(self) -> int:
        """Elements from row to row of a slot."""
        return ring_pitch(self.shape[1], element_bytes(self.element))


@dataclass(frozen=True)
class Stream:
    """How a stream is walked.

    Attributes:
        extent: Of the dimension.
        size: Of a block; the last one may be smaller.
        stages: Slots of a ring.
        threads: Of a block of the launch.
        thread: Number of the thread.
        has_async_copies: Whether threads go on while they copy.
        has_warpgroups: Whether four subgroups compute products together.
        barriers_at: Where in shared memory the mbarriers of slots may be, None where
            threads have to copy.
    """

    extent: int
    size: int
    stages: int
    threads: int
    thread: Any
    has_async_copies: bool
    has_warpgroups: bool = False
    barriers_at: int | None = None

    def slot(self, position: Any) -> Any:
        """Build the number of the slot for the block at a position."""
        if isinstance(position, int):
            return position // self.size % self.stages
        number = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), self.size)
        return applied(number % self.stages, [position])


class Ring:
    """The slots of the blocks of a tensor.

    Attributes:
        block: What is read.
        stream: How.
        buffer: Rows of all slots, with what lies behind them.
        swizzled: How it lies where `wgmma` reads it, None elsewhere.
    """

    def __init__(self, block: Block, stream: Stream, shared: Any, start: int) -> None:
        """Make the ring, at the insertion point.

        Args:
            block: What is read.
            stream: How.
            shared: Shared memory.
            start: Where in it the ring begins, in bytes.
        """
        self.block, self.stream = block, stream
        rows, columns = stream.stages * block.shape[0], block.pitch
        self.swizzled: SwizzledTile | None = None
        if stream.has_warpgroups and can_swizzle(block.shape, _bytes(block)):
            columns = block.shape[1]
            self.swizzled = SwizzledTile(rows, columns)
        type_ = ir.MemRefType.get(
            [rows, columns], block.element, memory_space=workgroup_space()
        )
        self.buffer = memref.ViewOp(type_, shared, constant_index(start), []).result
        self._target = self.buffer
        if self.swizzled is not None:
            self._target = flat_view(self.buffer.owner.opview)

    def first_row(self, position: Any) -> Any:
        """Build the first row of the slot for the block at a position."""
        slot = self.stream.slot(position)
        if isinstance(slot, int):
            return slot * self.block.shape[0]
        return applied(ir.AffineExpr.get_dim(0) * self.block.shape[0], [slot])

    def copy(self, position: Any) -> None:
        """Build the copies of the block at a position, each thread its own pieces."""
        rows, columns = self.block.shape
        pieces = columns // self.block.piece
        count, threads = rows * pieces, self.stream.threads
        offsets = self.block.offsets(position)
        first = self.first_row(position)
        for round_ in range(math.ceil(count / threads)):
            place = self._place(round_, pieces)
            if (round_ + 1) * threads <= count:
                self._copy_piece(place, offsets, first, position)
                continue
            left = constant_index(count - round_ * threads)
            is_there = arith.CmpIOp(
                arith.CmpIPredicate.slt, self.stream.thread, left
            ).result
            with only_if(is_there):
                self._copy_piece(place, offsets, first, position)

    def _place(self, round_: int, pieces: int) -> tuple[Any, Any]:
        """Build the row and the column of the piece that a thread copies in a round."""
        threads, thread = self.stream.threads, [self.stream.thread]
        number = ir.AffineExpr.get_dim(0)
        more = 0
        if threads % pieces == 0:
            more = round_ * threads // pieces
        else:
            number = number + round_ * threads
        row = applied(ir.AffineExpr.get_floor_div(number, pieces), thread)
        column = applied(number % pieces * self.block.piece, thread)
        return plus(row, more), column

    def _copy_piece(
        self, place: tuple[Any, Any], offsets: Sequence[Any], first: Any, position: Any
    ) -> None:
        block = self.block
        row, column = place
        source = [as_value(offset) for offset in offsets]
        source[block.outer] = sum_of(offsets[block.outer], row)
        source[block.inner] = sum_of(offsets[block.inner], column)
        target = [sum_of(first, row), column]
        if self.swizzled is not None:
            rows = self.swizzled.rows
            target = [swizzled_element(first, row, column, rows)]
        if self.stream.extent % self.stream.size == 0:
            self._move(source, target)
            return
        at = sum_of(position, row if block.streamed else column)
        end = constant_index(self.stream.extent)
        inside = arith.CmpIOp(arith.CmpIPredicate.slt, at, end).result
        if self.stream.has_async_copies:
            self._move_some(source, target, inside)
            return
        with only_if(inside):
            self._move(source, target)
        behind = arith.CmpIOp(arith.CmpIPredicate.sge, at, end).result
        with only_if(behind):
            type_ = ir.VectorType.get([block.piece], block.element)
            zeros = ir.DenseElementsAttr.get_splat(type_, _zero(block.element))
            none = arith.ConstantOp(type_, zeros).result
            vector.StoreOp(none, self._target, target, alignment=VECTOR_BYTES)

    def _move(self, source: Sequence[Any], target: Sequence[Any]) -> None:
        block = self.block
        if self.stream.has_async_copies:
            nvgpu.DeviceAsyncCopyOp(
                self._target, target, block.memory, source, block.piece, bypassL1=True
            )
            return
        type_ = ir.VectorType.get([block.piece], block.element)
        moved = vector.LoadOp(type_, block.memory, source, alignment=VECTOR_BYTES)
        vector.StoreOp(moved.result, self._target, target, alignment=VECTOR_BYTES)

    def _move_some(
        self, source: Sequence[Any], target: Sequence[Any], inside: Any
    ) -> None:
        """Copy a piece, or zeros where it lies behind the end."""
        block = self.block
        zero = constant_index(0)
        # Where nothing is read of, the tensor has a place as well.
        place = [arith.SelectOp(inside, index, zero).result for index in source]
        count = arith.SelectOp(inside, constant_index(block.piece), zero).result
        nvgpu.DeviceAsyncCopyOp(
            self._target,
            target,
            block.memory,
            place,
            block.piece,
            srcElements=count,
            bypassL1=True,
        )


def barrier() -> None:
    """Build a wait of all threads of a block for each other."""
    gpu.BarrierOp()


def _bytes(block: Block) -> int:
    return element_bytes(block.element)


def _zero(element: Any) -> Any:
    return ir.FloatAttr.get(element, 0.0)


class only_if:
    """Puts what is built in it under a condition."""

    def __init__(self, condition: Any) -> None:
        self._if = scf.IfOp(condition)
        self._point = ir.InsertionPoint(self._if.then_block)

    def __enter__(self) -> None:
        self._point.__enter__()

    def __exit__(self, *error: object) -> None:
        scf.YieldOp([])
        self._point.__exit__(*error)
