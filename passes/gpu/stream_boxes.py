"""Owns copies of the blocks of a stream that the tensor memory accelerator makes.

Each slot of a ring has an mbarrier. One thread begins the copy of a block, box by box;
what lies behind the end of the stream arrives as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from magweld.bindings import arith, func, ir, memref, nvvm
from magweld.passes.gpu.bulk_copies import (
    MBARRIER_BYTES,
    copy_box,
    init_mbarriers,
    mbarrier_at,
    rows_of_box,
    wait_for_phase,
)
from magweld.passes.gpu.register_tiles import applied, as_value, constant_index, sum_of
from magweld.passes.gpu.stream_rings import Block, Ring, Stream, only_if
from magweld.passes.gpu.structure import element_bytes, workgroup_space
from magweld.passes.gpu.swizzled_tiles import ROW, ROW_BYTES, shared_address
from magweld.passes.gpu.tensor_maps import add_map, map_argument, map_of
from magweld.tensor_map import TensorMap


def box_map(block: Block) -> TensorMap | None:
    """Return the map by which blocks are copied, None where threads have to."""
    rows = rows_of_box(block.shape[0])
    shape = list(ir.MemRefType(block.memory.type).shape)
    if rows is None or not isinstance(block.memory, ir.BlockArgument):
        return None
    box = [1] * len(shape)
    box[block.outer], box[block.inner] = rows, ROW
    found = map_of(block.memory.type, box, ROW_BYTES)
    return None if list(found.violations()) else found


def barrier_bytes(rings: int, stages: int) -> int:
    """Return the bytes of the mbarriers of all slots."""
    return rings * stages * MBARRIER_BYTES


class StreamBoxes:
    """Builds them."""

    def __init__(
        self, rings: Sequence[Ring], stream: Stream, shared: Any, start: int
    ) -> None:
        """Make the mbarriers, at the insertion point.

        Args:
            rings: All of which have a `box_map`, and are swizzled.
            stream: How blocks are walked.
            shared: Shared memory.
            start: Where in it the mbarriers begin, in bytes.
        """
        self._rings = list(rings)
        self._stream = stream
        count = len(self._rings) * stream.stages
        i64 = ir.IntegerType.get_signless(64)
        type_ = ir.MemRefType.get([count], i64, memory_space=workgroup_space())
        self._barriers = memref.ViewOp(type_, shared, constant_index(start), []).result
        init_mbarriers(self._barriers, count, self._by_one)

    def _by_one(self) -> AbstractContextManager[object]:
        zero = constant_index(0)
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, self._stream.thread, zero)
        return only_if(is_first.result)

    def copy(self, ring: Ring, position: Any) -> None:
        """Build the copy of the block at a position, which one thread begins."""
        with self._by_one():
            self._begin(ring, position)

    def _begin(self, ring: Ring, position: Any) -> None:
        block, tile = ring.block, ring.swizzled
        map_ = box_map(block)
        assert map_ is not None, "rings are chosen for boxes"
        assert tile is not None, "rings are chosen for boxes"
        i32 = ir.IntegerType.get_signless(32)
        size = math.prod(block.shape) * element_bytes(block.element)
        slot = self._stream.slot(position)
        barrier = self._barrier(ring, slot)
        expected = arith.ConstantOp(i32, size).result
        nvvm.MBarrierArriveExpectTxOp(barrier, expected, results=[])
        parameter = _parameter(block, map_)
        first = applied(
            ir.AffineExpr.get_dim(0) * (block.shape[0] * ROW_BYTES), [as_value(slot)]
        )
        address = shared_address(ring.buffer.owner.opview)
        start = arith.AddIOp(address, first).result
        offsets = block.offsets(position)
        rows, columns = block.shape
        for row in range(0, rows, map_.box[block.outer]):
            for column in range(0, columns, ROW):
                more = constant_index(tile.bytes_before(row, column))
                place = arith.AddIOp(start, more).result
                at = [as_value(offset) for offset in offsets]
                at[block.outer] = sum_of(at[block.outer], constant_index(row))
                at[block.inner] = sum_of(at[block.inner], constant_index(column))
                copy_box(place, parameter, at, barrier)

    def wait(self, ring: Ring, position: Any, behind: int) -> None:
        """Build a wait of all threads for the block that lies so far behind a position.

        Nothing is built where there is no such block.
        """
        stream = self._stream
        if isinstance(position, int):
            at = position - behind
            if not 0 <= at < stream.extent:
                return
            number = at // stream.size
            slot: Any = number % stream.stages
            turn = constant_index(number // stream.stages % 2)
        else:
            before = ir.AffineExpr.get_dim(0) - behind
            count = ir.AffineExpr.get_floor_div(before, stream.size)
            slot = applied(count % stream.stages, [position])
            odd = ir.AffineExpr.get_floor_div(count, stream.stages) % 2
            turn = applied(odd, [position])
        wait_for_phase(self._barrier(ring, slot), turn)

    def _barrier(self, ring: Ring, slot: Any) -> Any:
        """Build the pointer to the mbarrier of a slot."""
        before = self._rings.index(ring) * self._stream.stages
        number = sum_of(before, slot) if not isinstance(slot, int) else before + slot
        return mbarrier_at(self._barriers, number)


def _parameter(block: Block, map_: TensorMap) -> Any:
    """Return the map of a tensor, an argument that the function around gets for it."""
    function: func.FuncOp = block.memory.owner.owner.opview
    number = block.memory.arg_number
    add_map(function, number, map_.box, map_.swizzle)
    return map_argument(function, number, map_)
