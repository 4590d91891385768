"""Owns lower-bulk-copies: copies of boxes become instructions of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, nvvm
from magweld.dialects.tile_graph import BULK_COPY
from magweld.passes.gpu.bulk_copies import bulk_copy_of, copy_box
from magweld.passes.gpu.linalg_structure import linalg_operations_in
from magweld.passes.gpu.register_tiles import applied
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.gpu.swizzled_tiles import ROW_BYTES, as_index, shared_address
from magweld.passes.gpu.tensor_maps import map_argument
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
    map_ = map_argument(kernel, copy.part.argument.arg_number, copy.map)
    barrier = _barrier_of(op)
    if map_ is None:
        raise located_error(op, "expected a tensor map of the matrix")
    if barrier is None:
        raise located_error(op, "expected an mbarrier that expects its bytes")
    slot = copy.slot
    begin = shared_address(slot.ring.owner.opview)
    first = applied(ir.AffineExpr.get_dim(0) * ROW_BYTES, [as_index(slot.first)])
    start = arith.AddIOp(begin, first).result
    rows, columns = copy.part.starts
    for row, column in copy.boxes():
        more = slot.tile.bytes_before(row, column)
        place = arith.AddIOp(start, as_index(more)).result
        copy_box(place, map_, [_sum(rows, row), _sum(columns, column)], barrier)


def _barrier_of(op: Any) -> ir.Value | None:
    """Return the mbarrier that expects the bytes of a copy, in front of it."""
    found = None
    for one in op.operation.block.operations:
        if one.operation == op.operation:
            return found
        if isinstance(one, nvvm.MBarrierArriveExpectTxOp):
            found = one.addr
    return None


def _sum(starts: Sequence[ir.Value | int], more: int) -> ir.Value:
    """Build the sum of where a part begins, and more."""
    known = more + sum(one for one in starts if isinstance(one, int))
    total = as_index(known)
    for one in starts:
        if not isinstance(one, int):
            total = arith.AddIOp(total, one).result
    return total
