"""Owns copies that the tensor memory accelerator makes: boxes, and who waits for them.

One thread begins the copy of a box of a tensor into shared memory; an mbarrier there
counts its bytes, and threads wait for the phase of it that they complete. From the PTX
ISA ("Data Movement and Conversion Instructions: cp.async.bulk.tensor", "mbarrier").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, gpu, ir, llvm, memref, nvvm, scf
from magweld.passes.gpu.linalg_structure import inputs_of, outputs_of
from magweld.passes.gpu.register_tiles import applied
from magweld.passes.gpu.structure import (
    SHARED_ADDRESS_SPACE,
    element_bytes,
    thread_mapping,
)
from magweld.passes.gpu.swizzled_tiles import (
    PIECE,
    ROW,
    ROW_BYTES,
    as_index,
    build_fence,
)
from magweld.passes.gpu.tensor_maps import map_of
from magweld.passes.gpu.warpgroup_product import RingRows
from magweld.tensor_map import MOST_IN_BOX, TensorMap

MBARRIER_BYTES = 8
# Nanoseconds for which hardware may suspend a thread that waits, before it asks again.
_TICKS = 10_000_000
# LLVM's number for the shared memory of a cluster of blocks, here of one.
_CLUSTER_ADDRESS_SPACE = 7


@dataclass(frozen=True)
class TensorPart:
    """A part of a matrix that is an argument.

    Attributes:
        argument: The matrix.
        starts: Its first row and column: numbers, or values that are added up.
        shape: Rows and columns.
    """

    argument: ir.BlockArgument
    starts: tuple[tuple[ir.Value | int, ...], tuple[ir.Value | int, ...]]
    shape: tuple[int, int]

    @staticmethod
    def of(value: ir.Value) -> TensorPart | None:
        """Return what slices a memref is of an argument, None for other memrefs."""
        shape = tuple(ir.MemRefType(value.type).shape)
        if len(shape) != 2:
            return None
        rows: list[ir.Value | int] = []
        columns: list[ir.Value | int] = []
        while not isinstance(value, ir.BlockArgument):
            op = value.owner.opview
            if isinstance(op, memref.SubViewOp):
                starts = _starts(op)
                if starts is None:
                    return None
                rows.append(starts[0])
                columns.append(starts[1])
            elif not isinstance(op, memref.CastOp):
                return None
            value = op.operands[0]
        if not _is_whole_matrix(value):
            return None
        return TensorPart(value, (tuple(rows), tuple(columns)), (shape[0], shape[1]))


def _starts(op: memref.SubViewOp) -> list[ir.Value | int] | None:
    """Return where a slice of neighbours begins, None for other slices."""
    kept = list(ir.MemRefType(op.result.type).shape) == list(op.static_sizes)
    if not kept or len(op.static_offsets) != 2 or set(op.static_strides) != {1}:
        return None
    marker, dynamic = ir.ShapedType.get_dynamic_stride_or_offset(), iter(op.offsets)
    return [next(dynamic) if n == marker else n for n in op.static_offsets]


def _is_whole_matrix(value: ir.BlockArgument) -> bool:
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    shape = list(type_.shape)
    return len(shape) == 2 and offset == 0 and list(strides) == [shape[1], 1]


@dataclass(frozen=True)
class BulkCopy:
    """The copy of a part of a matrix to a slot of a swizzled ring.

    Attributes:
        part: What is copied.
        slot: Where it goes.
        map: What the accelerator is told of the matrix.
    """

    part: TensorPart
    slot: RingRows
    map: TensorMap

    @staticmethod
    def of(source: ir.Value, target: ir.Value) -> BulkCopy | None:
        """Return the copy of all of a tile, None where threads have to make it."""
        part, slot = TensorPart.of(source), RingRows.of(target)
        if part is None or slot is None:
            return None
        if part.shape != (slot.rows, slot.tile.columns):
            return None
        rows = rows_of_box(slot.rows)
        if rows is None:
            return None
        one = map_of(part.argument.type, (rows, ROW), ROW_BYTES)
        return None if list(one.violations()) else BulkCopy(part, slot, one)

    @property
    def nbytes(self) -> int:
        """Bytes that arrive; zeros behind the end of a tensor are counted as well."""
        kind = ir.MemRefType(self.part.argument.type)
        return math.prod(self.part.shape) * element_bytes(kind.element_type)

    def boxes(self) -> Iterator[tuple[int, int]]:
        """Yield the row and column in the part at which each box begins."""
        rows, columns = self.part.shape
        yield from itertools.product(
            range(0, rows, self.map.box[0]), range(0, columns, self.map.box[1])
        )


def rows_of_box(rows: int) -> int | None:
    """Return the rows of the fewest boxes of one size that make a tile."""
    for count in range(-(-rows // MOST_IN_BOX), rows // PIECE + 1):
        if rows % count == 0 and rows // count % PIECE == 0:
            return rows // count
    return None


def bulk_copy_of(op: Any) -> BulkCopy | None:
    """Return what a copy on buffers is, None where threads have to make it."""
    (source,), (target,) = inputs_of(op), outputs_of(op)
    return BulkCopy.of(source, target)


class by_one_thread:
    """Puts what is built in it into a loop over one thread: others skip it."""

    def __enter__(self) -> Any:
        """Return the block of the loop."""
        loop = scf.ForallOp([0], [1], [1], [], mapping=thread_mapping(1))
        self._point = ir.InsertionPoint(loop.body)
        self._point.__enter__()
        return loop.body

    def __exit__(self, *error: object) -> None:
        scf.InParallelOp()
        self._point.__exit__(*error)


def mbarrier_at(barriers: ir.Value, number: ir.Value | int) -> ir.Value:
    """Build the pointer to one of some mbarriers, which are words of shared memory."""
    start = memref.ExtractAlignedPointerAsIndexOp(barriers).result
    place = ir.AffineExpr.get_dim(0) * MBARRIER_BYTES
    inside = applied(place, [as_index(number)])
    return _shared_pointer(arith.AddIOp(start, inside).result)


def init_mbarriers(
    barriers: ir.Value,
    count: int,
    by_one: Callable[[], AbstractContextManager[object]],
) -> None:
    """Build the start of mbarriers of one arrival each: that of who copies.

    The fence is for these, and for what threads have had where copies go.

    Args:
        barriers: Words of shared memory.
        count: How many.
        by_one: What puts what is built in it where one thread alone comes.
    """
    with by_one():
        one = arith.ConstantOp(_i32(), 1).result
        for number in range(count):
            nvvm.MBarrierInitOp(mbarrier_at(barriers, number), one)
    build_fence()
    gpu.BarrierOp()


def wait_for_phase(barrier: ir.Value, turn: ir.Value) -> None:
    """Build a wait for the end of a phase of an mbarrier.

    Args:
        barrier: Pointer to it.
        turn: 0 for the first phase and every other one, 1 for those between: an index.
    """
    phase = arith.IndexCastOp(_i32(), turn).result
    ticks = arith.ConstantOp(_i32(), _TICKS).result
    nvvm.MBarrierTryWaitParityOp(barrier, phase, ticks)


def copy_box(
    place: ir.Value, map_: ir.Value, at: Sequence[ir.Value], barrier: ir.Value
) -> None:
    """Build the copy of a box, which one thread begins.

    Args:
        place: Where in shared memory it goes: an index.
        map_: The map of the tensor.
        at: Where in the tensor the box begins, in the order of its dimensions: indices.
        barrier: Pointer to the mbarrier that expects its bytes.
    """
    # The innermost dimension comes first.
    box = [arith.IndexCastOp(_i32(), one).result for one in reversed(at)]
    target = _shared_pointer(place, _CLUSTER_ADDRESS_SPACE)
    nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(target, map_, box, barrier, [])


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _shared_pointer(address: ir.Value, space: int = SHARED_ADDRESS_SPACE) -> ir.Value:
    """Build the pointer to an address in shared memory, which is an index.

    Args:
        address: In the shared memory of the block.
        space: Number of the address space; addresses are the same in that of a cluster.
    """
    number = arith.IndexCastOp(ir.IntegerType.get_signless(64), address).result
    type_ = ir.Type.parse(f"!llvm.ptr<{space}>")
    made: ir.Value = llvm.IntToPtrOp(type_, number).result
    return made
