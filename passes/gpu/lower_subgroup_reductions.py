"""Owns lower-subgroup-reductions: lanes exchange their partial results by shuffles."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, arith, gpu, ir, memref, scf
from magweld.dialects.tile_graph import SUBGROUP_REDUCTION
from magweld.passes.gpu.cross_thread_reduction import Combiner, combiner_of
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    linalg_operations_in,
    outputs_of,
)
from magweld.passes.gpu.structure import is_in_space, kernels_of, private_space
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error


@dataclass(frozen=True)
class LowerSubgroupReductions(Pass):
    """Let lanes combine what they have where `tile_graph.subgroup_reduction` says so.

    In steps of half as many lanes each time, every lane gets what another one has by
    `gpu.shuffle xor` and combines both, so that all end with the combination of all:

        %1, %valid = gpu.shuffle xor %0, %c16, %c32 : f32
        %2 = arith.addf %0, %1 : f32

    What writes to memory that threads share is run by the first of the lanes alone.
    """

    name: ClassVar[str] = "lower-subgroup-reductions"

    subgroup: Annotated[int, "threads that execute in lockstep"] = 32

    def run(self, module: Any) -> None:
        """Lower the reductions of all kernels."""
        for kernel in kernels_of(module):
            for op in linalg_operations_in(kernel):
                if SUBGROUP_REDUCTION in op.operation.attributes:
                    with ir.InsertionPoint(op), op.location:
                        self._lower(op)

    def _lower(self, op: Any) -> None:
        lanes = ir.IntegerAttr(op.operation.attributes[SUBGROUP_REDUCTION]).value
        if lanes & (lanes - 1) or not 1 < lanes <= self.subgroup:
            raise located_error(
                op, f"expected a power of two of at most {self.subgroup} lanes"
            )
        (own,) = inputs_of(op)
        if not is_in_space(own, private_space()):
            raise located_error(op, f"expected what a lane has alone, got {own.type}")
        combiner = combiner_of(op)
        if combiner is not None:
            self._exchange(own, combiner, lanes)
        del op.operation.attributes[SUBGROUP_REDUCTION]
        if not is_in_space(outputs_of(op)[0], private_space()):
            only = scf.IfOp(_is_first_of(lanes))
            with ir.InsertionPoint(only.then_block):
                end = scf.YieldOp([])
            op.operation.move_before(end.operation)

    def _exchange(self, partial: ir.Value, combiner: Combiner, lanes: int) -> None:
        """Put the combination of all lanes into each element of `partial`."""
        shape = partial.type.shape
        for numbers in itertools.product(*(range(size) for size in shape)):
            index = [arith.ConstantOp(ir.IndexType.get(), n).result for n in numbers]
            value: ir.Value = memref.LoadOp(partial, index).result
            distance = lanes // 2
            while distance:
                value = combiner.build(value, self._from_lane(value, distance))
                distance //= 2
            memref.StoreOp(value, partial, index)

    def _from_lane(self, value: ir.Value, distance: int) -> ir.Value:
        """Return what the lane has whose number differs in one bit."""
        i32 = ir.IntegerType.get_signless(32)
        offset, width = (
            arith.ConstantOp(i32, number).result for number in (distance, self.subgroup)
        )
        short = isinstance(value.type, ir.F16Type | ir.BF16Type)
        sent = arith.ExtFOp(ir.F32Type.get(), value).result if short else value
        got: ir.Value = gpu.ShuffleOp(
            sent, offset, width, gpu.ShuffleMode.XOR
        ).shuffleResult
        return arith.TruncFOp(value.type, got).result if short else got


def _is_first_of(lanes: int) -> ir.Value:
    thread = gpu.thread_id(gpu.Dimension.x)
    map_ = ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0) % lanes])
    lane = affine.AffineApplyOp(map_, [thread]).result
    zero = arith.ConstantOp(ir.IndexType.get(), 0).result
    made: ir.Value = arith.CmpIOp(arith.CmpIPredicate.eq, lane, zero).result
    return made
