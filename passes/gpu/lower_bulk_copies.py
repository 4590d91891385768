"""Owns lower-bulk-copies: copies of boxes become instructions of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, arith, ir, nvvm
from magweld.dialects.tile_graph import BULK_COPY
from magweld.passes.gpu.bulk_copies import (
    CLUSTER_ADDRESS_SPACE,
    BulkCopy,
    bulk_copy_of,
    shared_pointer,
)
from magweld.passes.gpu.linalg_structure import linalg_operations_in
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.gpu.swizzled_tiles import ROW_BYTES, as_index, shared_address
from magweld.passes.gpu.tensor_maps import maps_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error


@dataclass(frozen=True)
class LowerBulkCopies(Pass):
    """Replace copies that have `tile_graph.bulk_copy` by instructions.

        nvvm.mbarrier.arrive.expect_tx %barrier, %bytes
        linalg.copy {tile_graph.bulk_copy, ...} ins(%x[%i, %k]) outs(%ring[%slot])
    =>
        nvvm.mbarrier.arrive.expect_tx %barrier, %bytes
        nvvm.cp.async.bulk.tensor.shared.cluster.global %place, %map, %barrier,
            box [%k, %i]

    One for each box: of up to 256 rows of 128 bytes. The map is the argument of the
    function that `magweld.tensor_maps` says is of the matrix, and the barrier that
    which expects the bytes in front of the copy. A copy without one of both is an
    error.
    """

    name: ClassVar[str] = "lower-bulk-copies"

    def run(self, module: Any) -> None:
        """Lower the copies of all kernels."""
        for kernel in kernels_of(module):
            for op in linalg_operations_in(kernel):
                if BULK_COPY in op.operation.attributes:
                    with ir.InsertionPoint(op), op.location:
                        _lower(op, kernel)
                    op.operation.erase()


def _lower(op: Any, kernel: Any) -> None:
    copy = bulk_copy_of(op)
    if copy is None:
        raise located_error(
            op, "expected a slice of a matrix and the slot of a swizzled ring"
        )
    map_, barrier = _map_of(copy, kernel), _barrier_of(op)
    if map_ is None:
        raise located_error(op, "expected a tensor map of the matrix")
    if barrier is None:
        raise located_error(op, "expected an mbarrier that expects its bytes")
    slot = copy.slot
    begin = shared_address(slot.ring.owner.opview)
    first = _applied(ir.AffineExpr.get_dim(0) * ROW_BYTES, as_index(slot.first))
    start = arith.AddIOp(begin, first).result
    for row, column in copy.boxes():
        place = _place(start, copy.bytes_before(row, column))
        rows, columns = copy.part.starts
        # The innermost dimension comes first.
        at = [_coordinate(columns, column), _coordinate(rows, row)]
        nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(place, map_, at, barrier, [])


def _map_of(copy: BulkCopy, kernel: Any) -> ir.Value | None:
    number = copy.part.argument.arg_number
    for one in maps_of(kernel):
        if one.argument == number and one.map == copy.map:
            found: ir.Value = kernel.entry_block.arguments[one.number]
            return found
    return None


def _barrier_of(op: Any) -> ir.Value | None:
    """Return the mbarrier that expects the bytes of a copy, in front of it."""
    found = None
    for one in op.operation.block.operations:
        if one.operation == op.operation:
            return found
        if isinstance(one, nvvm.MBarrierArriveExpectTxOp):
            found = one.addr
    return None


def _coordinate(starts: Sequence[ir.Value | int], more: int) -> ir.Value:
    """Build a sum as the number that is the place of a box."""
    known = more + sum(one for one in starts if isinstance(one, int))
    total = as_index(known)
    for one in starts:
        if not isinstance(one, int):
            total = arith.AddIOp(total, one).result
    i32 = ir.IntegerType.get_signless(32)
    made: ir.Value = arith.IndexCastOp(i32, total).result
    return made


def _place(start: ir.Value, more: int) -> ir.Value:
    """Build the pointer to where a box goes."""
    address = arith.AddIOp(start, as_index(more)).result
    return shared_pointer(address, CLUSTER_ADDRESS_SPACE)


def _applied(expression: ir.AffineExpr, operand: ir.Value) -> ir.Value:
    map_ = ir.AffineMap.get(1, 0, [expression])
    made: ir.Value = affine.AffineApplyOp(map_, [operand]).result
    return made
