"""Owns block-reductions: a long sum of products is made block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir, memref, scf
from magweld.dialects.tile_graph import REDUCTION_BLOCK
from magweld.passes.analysis.index_maps import linear_index
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.generic_forms import maps_of
from magweld.passes.cpu.kernels import generics_of
from magweld.passes.cpu.loop_nest import NotALoopNest, read_loop_nest
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import add_remark
from magweld.passes.tiling.steps import is_alone

# Types whose sums lose nothing when they wait in memory between two blocks.
_WIDE = ("f32", "f64")


@dataclass(frozen=True)
class BlockReductions(Pass):
    """Split the reductions of matrix products into the blocks that the plan names.

    Sums wait in the result between two blocks. Every block is an operation of its own,
    with a register tile and a packed panel of its own. A product that has no such
    blocks stays whole, and the kernel keeps the reason as a remark.

        y[m, n] += a[m, k] * b[k, n], k < 1536    {tile_graph.reduction_block = 192}
            =>   for kk = 0 to 1536 step 192:
                     y[m, n] += a[m, kk + k] * b[kk + k, n], k < 192
    """

    name: ClassVar[str] = "block-reductions"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the products of all kernels of the module."""
        for function, op in generics_of(module):
            if REDUCTION_BLOCK in op.attributes:
                block = ir.IntegerAttr(op.attributes[REDUCTION_BLOCK]).value
                del op.attributes[REDUCTION_BLOCK]
                _block_reduction(function, op, block)


def _block_reduction(function: func.FuncOp, op: ir.Operation, block: int) -> None:
    try:
        nest = read_loop_nest(op)
    except NotALoopNest as error:
        add_remark(function, f"no blocks of {block} iterations: {error}")
        return
    loop = max(nest.reductions, key=lambda d: nest.extents[d], default=None)
    indices = [linear_index(expr) for map_ in maps_of(op) for expr in map_.results]
    wide = str(op.operands[len(op.operands) - 1].type.element_type) in _WIDE
    if loop is None or not (nest.product and wide and is_alone(loop, indices)):
        add_remark(function, f"no blocks of {block} iterations: no such product")
    elif block < nest.extents[loop]:
        with op.location:
            _split(op, loop, nest.extents[loop], block)


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
