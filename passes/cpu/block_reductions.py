"""Owns block-reductions: a long sum of products is made block by block."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Annotated, ClassVar

from magweld.bindings import ir, memref, scf
from magweld.passes.analysis.index_maps import linear_index
from magweld.passes.analysis.steps import REDUCTION_BLOCK, block_of, is_alone
from magweld.passes.base import Pass
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.generic_forms import maps_of
from magweld.passes.cpu.kernels import generics_of
from magweld.passes.cpu.loop_nest import (
    Access,
    LoopNest,
    NotALoopNest,
    read_loop_nest,
)

# Types whose sums lose nothing when they wait in memory between two blocks.
_WIDE = ("f32", "f64")
# Times that an operand has to be read for its blocks to pay.
LEAST_READS = 16


@dataclass(frozen=True)
class BlockReductions(Pass):
    """Split long reductions of matrix products into blocks that a cache holds.

    Sums wait in the result between two blocks. Every block is an operation of its own,
    with a register tile and a packed panel of its own.

        y[m, n] += a[m, k] * b[k, n], k < 1536
            =>   for kk = 0 to 1536 step 192:
                     y[m, n] += a[m, kk + k] * b[kk + k, n], k < 192
    """

    name: ClassVar[str] = "block-reductions"

    step: Annotated[int, "most iterations of a block"] = REDUCTION_BLOCK

    def run(self, module: ir.Operation) -> None:
        """Rewrite the products of all kernels of the module."""
        for _, op in generics_of(module):
            loop = _long_reduction(op, self.step)
            if loop is not None:
                with op.location:
                    _split(op, *loop)


def _long_reduction(op: ir.Operation, step: int) -> tuple[int, int, int] | None:
    """Return the loop to split, its extent and that of a block; None for not at all."""
    try:
        nest = read_loop_nest(op)
    except NotALoopNest:
        return None
    reads = min((_reads(nest, access) for access in nest.inputs), default=0)
    if not nest.product or reads < LEAST_READS:
        return None
    if str(op.operands[2].type.element_type) not in _WIDE:
        return None
    loop = max(nest.reductions, key=lambda d: nest.extents[d])
    indices = [linear_index(expr) for map_ in maps_of(op) for expr in map_.results]
    extent = nest.extents[loop]
    block = block_of(extent, step)
    if block == extent or not is_alone(loop, indices):
        return None
    return loop, extent, block


def _reads(nest: LoopNest, access: Access) -> int:
    """Return how often an element of an operand is read."""
    return prod(
        extent
        for d, extent in enumerate(nest.extents)
        if nest.parallel[d] and not access.strides[d]
    )


def _dimension(expr: ir.AffineExpr) -> int | None:
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _split(op: ir.Operation, loop: int, extent: int, step: int) -> None:
    whole = extent - extent % step
    with ir.InsertionPoint(op):
        blocks = scf.ForOp(*map(index_constant, (0, whole, step)))
        with ir.InsertionPoint(blocks.body):
            _block(op, loop, blocks.induction_variable, step)
            scf.YieldOp([])
        if whole < extent:
            _block(op, loop, index_constant(whole), extent - whole)
    op.erase()


def _block(op: ir.Operation, loop: int, start: ir.Value, size: int) -> None:
    """Clone a product onto the part of its operands that a block reads."""
    maps = maps_of(op)
    parts = [
        _part(operand, [_dimension(e) == loop for e in map_.results], start, size)
        for operand, map_ in zip(op.operands, maps, strict=True)
    ]
    clone = op.clone().operation
    for position, part in enumerate(parts):
        clone.operands[position] = part


def _part(operand: ir.Value, moves: list[bool], start: ir.Value, size: int) -> ir.Value:
    if not any(moves):
        return operand
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [size if m else n for m, n in zip(moves, operand.type.shape, strict=True)]
    steps, _ = operand.type.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(dynamic, steps)
    kind = ir.MemRefType.get(shape, operand.type.element_type, layout)
    offsets = [dynamic if m else 0 for m in moves]
    return memref.SubViewOp(
        kind, operand, [start] * sum(moves), [], [], offsets, shape, [1] * len(shape)
    ).result
